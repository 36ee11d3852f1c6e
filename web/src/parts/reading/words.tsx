import type { Author } from '../../../../src/events/index.ts';
import { clock } from '../../shared/format.ts';
import { Go } from '../../shared/go.tsx';
import { memo } from '../../shared/memo.ts';
import { Person } from '../../shared/person.tsx';
import type { WordsItem } from '../../state/reading-items.ts';
import { Attachments } from './attachments.tsx';
import { Markdown } from './markdown.tsx';

interface WordsProps {
  item: WordsItem;
  conversation: string;
  /** The same speaker continues. */
  goesOn: boolean;
}

/** A message: who, when, to whom, and its text. */
export const Words = memo(function Words({ item, conversation, goesOn }: WordsProps) {
  const { author, at, to, seq, text, attachments, isNotice, turn } = item;
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
      </div>
    </article>
  );
});

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
      <b>{author.name}</b>
      {to.length > 0 && (
        <span class="quiet words-to">to {to.length > 3 ? `${to.length} agents` : to.join(', ')}</span>
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
