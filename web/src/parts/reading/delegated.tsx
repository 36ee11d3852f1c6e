import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Event } from '../../../../src/events/index.ts';
import { duration } from '../../shared/format.ts';
import { Go } from '../../shared/go.tsx';
import { Icon } from '../../shared/icon.tsx';
import { memo } from '../../shared/memo.ts';
import { followThread } from '../../state/follow-thread.ts';
import { type DelegationItem, type ReadingItem, readingItems } from '../../state/reading-items.ts';
import { nameOf } from '../../state/selection.ts';
import { LongText } from '../detail/long-text.tsx';
import { Attachments } from './attachments.tsx';

/** Most events of a thread shown in place; a longer thread is read in its own conversation. */
const MAX_EVENTS = 200;
const MAX_DEPTH = 4;

/** Draws the items of a thread. */
export type DrawThread = (items: readonly ReadingItem[], thread: string, depth: number) => ComponentChildren;

interface DelegatedProps {
  item: DelegationItem;
  depth: number;
  draw: DrawThread;
}

/** A task that one agent gave another, with its thread folded inside. */
export const Delegated = memo(function Delegated({ item, depth, draw }: DelegatedProps) {
  const { from, to, text, attachments, conversation, seq, thread, end, at } = item;
  const [isOpen, setOpen] = useState(false);
  const state = end?.outcome ?? 'open';
  return (
    <article class={`delegated delegated-${state}`} aria-label={`${nameOf(from)} gives ${nameOf(to)} a task`}>
      <p class="delegated-head">
        <span>
          <b>
            <bdi>{nameOf(from)}</bdi>
          </b>{' '}
          gives{' '}
          <b>
            <bdi>{nameOf(to)}</bdi>
          </b>{' '}
          a task
        </span>
        <span class="delegated-state">
          {end === null ? 'under way' : `${end.outcome} after ${duration(end.at - at)}`}
        </span>
        <span class="spring" />
        <Go to={{ conversation: thread }} title={thread}>
          its thread
        </Go>
      </p>
      <div dir="auto">
        <LongText text={text} lines={4} />
        {attachments.length > 0 && <Attachments of={attachments} conversation={conversation} seq={seq} />}
      </div>
      {end !== null && (
        <div class="delegated-result" dir="auto">
          <LongText text={end.text} lines={6} />
        </div>
      )}
      <button type="button" class="call-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? 'down' : 'right'} /> {isOpen ? 'Fold' : 'See how'}
      </button>
      {isOpen && <Thread thread={thread} isOver={end !== null} depth={depth + 1} draw={draw} />}
    </article>
  );
});

interface ThreadProps {
  thread: string;
  isOver: boolean;
  depth: number;
  draw: DrawThread;
}

function Thread({ thread, isOver, depth, draw }: ThreadProps) {
  const [events, setEvents] = useState<readonly Event[] | string>([]);
  useEffect(
    () => followThread(thread, { most: MAX_EVENTS, isOver, show: setEvents, fail: setEvents }),
    [thread, isOver],
  );
  if (typeof events === 'string') return <p class="problem">{events}</p>;
  const isCut = events.length >= MAX_EVENTS || depth > MAX_DEPTH;
  return (
    <div class="thread">
      {depth <= MAX_DEPTH && draw(readingItems(events), thread, depth)}
      {isCut && <Go to={{ conversation: thread }}>Read on in the thread</Go>}
    </div>
  );
}
