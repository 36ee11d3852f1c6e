import { useComputed } from '@preact/signals';
import type { Author } from '../../../../src/events/index.ts';
import { clock } from '../../shared/format.ts';
import { Go } from '../../shared/go.tsx';
import { memo } from '../../shared/memo.ts';
import { Person } from '../../shared/person.tsx';
import { nameOf } from '../../state/selection.ts';
import { shown } from '../../state/live.ts';
import type { WordsItem } from '../../state/reading-items.ts';
import { Attachments } from './attachments.tsx';
import { Markdown } from './markdown.tsx';

interface WordsProps {
  item: WordsItem;
  conversation: string;
  /** The same speaker continues. */
  goesOn: boolean;
  /** 0 in the conversation, more in threads within it. */
  depth: number;
}

/** A message: who, when, to whom, and its text. */
export const Words = memo(function Words({ item, conversation, goesOn, depth }: WordsProps) {
  const { author, at, to, seq, text, attachments, isNotice, turn, steered } = item;
  const waits = useComputed(() => waitingFor(seq, steered));
  return (
    <article
      class={`words words-${author.kind}${goesOn ? ' words-on' : ''}`}
      aria-label={`${author.name} says`}
    >
      {!goesOn && (
        <SpeakerLine author={author} at={at} to={to} seq={seq} turn={turn}>
          {isNotice && <span class="quiet">shown to people only</span>}
        </SpeakerLine>
      )}
      <div class="words-body" dir="auto">
        {text !== '' && <Markdown text={text} />}
        {attachments.length > 0 && <Attachments of={attachments} conversation={conversation} seq={seq} />}
        {steered.map(({ agent, step }) => (
          <p key={agent} class="quiet">
            <bdi>{nameOf(agent)}</bdi> has read it before step {step}
          </p>
        ))}
        {depth === 0 && waits.value !== '' && (
          <p class="quiet">
            <bdi>{waits}</bdi> has not read it yet
          </p>
        )}
      </div>
    </article>
  );
});

/** The names of those at work who are yet to read a message. Who is not at work begins a turn with it. */
function waitingFor(seq: number, steered: WordsItem['steered']): string {
  const { agents = {}, turns = [] } = shown.value ?? {};
  const waiting = Object.values(agents).filter(
    ({ id, turn, pending }) =>
      turn !== null &&
      pending.includes(seq) &&
      !turns.some((one) => one.id === turn && one.inputs.includes(seq)) &&
      !steered.some(({ agent }) => agent === id),
  );
  return waiting.map(({ name }) => name).join(', ');
}

interface SpeakerLineProps {
  author: Author;
  at: number;
  seq: number;
  to?: readonly string[];
  turn?: string | null;
  children?: preact.ComponentChildren;
}

export function SpeakerLine({ author, at, to = [], seq, turn = null, children }: SpeakerLineProps) {
  return (
    <header class="words-head">
      <Person author={author} />
      <b>
        <bdi>{author.name}</bdi>
      </b>
      {to.length > 0 && (
        <span class="quiet words-to">
          to <bdi>{to.length > 3 ? `${to.length} agents` : to.map(nameOf).join(', ')}</bdi>
        </span>
      )}
      {children}
      <span class="spring" />
      <Go
        class="words-time"
        title={`Event ${seq}`}
        to={{
          event: seq,
          tab: turn === null ? 'raw' : 'prompt',
          ...(turn !== null && { turn, step: null, vs: null }),
        }}
      >
        <time dateTime={new Date(at).toISOString()}>{clock(at).slice(0, 5)}</time>
      </Go>
    </header>
  );
}
