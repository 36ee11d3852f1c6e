import { useComputed } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { TaskView } from '../../../../src/library/projection/model.ts';
import { plural } from '../../shared/format.ts';
import { Icon } from '../../shared/icon.tsx';
import { Skeleton } from '../../shared/skeleton.tsx';
import { newestEvents, onEvents, shown } from '../../state/live.ts';
import { isPast } from '../../state/past.ts';
import { itemAt, type ReadingItem, readingItems } from '../../state/reading-items.ts';
import { openReading, type ReadingWindow } from '../../state/reading-window.ts';
import { go, route } from '../../state/route.ts';
import { head, nameOf, selectedTurn } from '../../state/selection.ts';
import { Items } from './items.tsx';
import { useReadingScroll } from './reading-scroll.ts';
import { UnderWay } from './under-way.tsx';
import '../../style/reading-cards.css';
import '../../style/reading.css';

/** The conversation as people read it, newest at the bottom. */
export function Reading() {
  const { conversation, at } = route.value;
  const isOpen = head.value > 0;
  const part = useMemo(
    () =>
      conversation !== null && isOpen
        ? openReading(conversation, {
            end: at,
            head: head.peek(),
            at: route.peek().event,
            newest: newestEvents(),
          })
        : null,
    [conversation, isOpen, at],
  );
  useEffect(() => {
    if (!part) return;
    // Events that arrived between opening the window and this effect.
    part.arrived([], head.peek());
    return onEvents((events) => part.arrived(events, head.peek()));
  }, [part]);
  if (part && conversation !== null)
    return <Part key={`${conversation} ${at}`} part={part} id={conversation} />;
  return (
    <div class="reading-column">
      <Skeleton />
    </div>
  );
}

function Part({ part, id }: { part: ReadingWindow; id: string }) {
  const items = useComputed(() => readingItems(part.events.value)).value;
  // A turn that was chosen elsewhere is also scrolled into view.
  const event = route.value.event ?? selectedTurn.value?.from ?? null;
  const found = event === null ? null : itemAt(items, event);
  const { box, isAtEnd, onScroll, toEnd } = useReadingScroll(part, { event, shown: found?.seq ?? null });
  const open = openTasks();
  const isLoading = part.events.value.length === 0 && part.problem.value === null;
  return (
    <div class="reading">
      <div
        class="reading-scroller"
        id="rows"
        ref={box}
        tabIndex={0}
        role="log"
        aria-label="What was said"
        aria-busy={isLoading}
        onScroll={onScroll}
      >
        <div class="reading-column">
          {part.problem.value !== null && <p class="problem">{part.problem.value}</p>}
          {part.hasEarlier() && <p class="quiet reading-edge">Earlier messages …</p>}
          {isLoading && <Skeleton />}
          <Items items={items} conversation={id} depth={0} shown={found?.seq ?? null} open={open} />
          <End isCut={part.hasLater()} />
        </div>
      </div>
      <div class="reading-edges">
        {open.size > 0 && <NeedsYou open={open} box={box} items={items} />}
        {!isAtEnd && (
          <button type="button" class="reading-end" onClick={toEnd}>
            <Icon name="down" /> Newest
          </button>
        )}
      </div>
    </div>
  );
}

/** The end of what is loaded. At the end of the conversation it shows running turns. */
function End({ isCut }: { isCut: boolean }) {
  if (isCut) return <p class="quiet reading-edge">Later messages …</p>;
  return isPast.value ? null : <UnderWay />;
}

/** Questions and approvals that wait for people, by id; none in the past. */
function openTasks(): ReadonlyMap<string, TaskView> {
  if (isPast.value) return new Map();
  const waiting = (shown.value?.tasks ?? []).filter(
    ({ kind, outcome }) => outcome === null && kind !== 'delegation',
  );
  return new Map(waiting.map((task) => [task.id, task]));
}

interface NeedsYouProps {
  open: ReadonlyMap<string, TaskView>;
  box: RefObject<HTMLDivElement | null>;
  /** The drawn items; the tasks' cards are among them. */
  items: readonly ReadingItem[];
}

/** Links to the oldest question or approval that is out of view. */
function NeedsYou({ open, box, items }: NeedsYouProps) {
  const [seen, setSeen] = useState<ReadonlySet<number>>(new Set());
  const seqs = [...open.values()].map(({ seq }) => seq).join();
  useEffect(() => {
    const inView = new Set<number>();
    const observer = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries) {
          const seq = Number((target as HTMLElement).dataset['ask']);
          if (isIntersecting) inView.add(seq);
          else inView.delete(seq);
        }
        setSeen(new Set(inView));
      },
      { root: box.current },
    );
    box.current?.querySelectorAll('[data-ask]').forEach((each) => observer.observe(each));
    return () => observer.disconnect();
  }, [seqs, items]);
  const hidden = [...open.values()].filter(({ seq }) => !seen.has(seq));
  const [first] = hidden;
  if (!first) return null;
  const lead = () => {
    const card = box.current?.querySelector(`[data-ask="${first.seq}"]`);
    if (card) card.scrollIntoView({ block: 'center' });
    else go({ event: first.seq, tab: 'raw' });
  };
  return (
    <button type="button" class="reading-needs" onClick={lead}>
      <bdi>{nameOf(first.owner)}</bdi> {first.kind === 'question' ? 'asks' : 'needs approval'}
      {hidden.length > 1 && `, ${plural(hidden.length - 1, 'other')} too`}
    </button>
  );
}
