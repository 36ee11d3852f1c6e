import { useState } from 'preact/hooks';
import { duration } from '../../shared/format.ts';
import { Go } from '../../shared/go.tsx';
import { Icon } from '../../shared/icon.tsx';
import { memo } from '../../shared/memo.ts';
import type { ReadCall, WorkItem } from '../../state/reading-items.ts';
import { nameOf } from '../../state/selection.ts';
import { LongText } from '../detail/long-text.tsx';
import { threadOfCall } from '../../state/threads.ts';
import { Fields } from './fields.tsx';
import { Markdown } from './markdown.tsx';
import { SpeakerLine } from './words.tsx';

/** What an agent did before it answered: its text in between, and a card for each tool call. */
export const Work = memo(function Work({ item, goesOn }: { item: WorkItem; goesOn: boolean }) {
  const { author, at, seq, turn, steps } = item;
  return (
    <article class={`words words-agent${goesOn ? ' words-on' : ''}`} aria-label={`${author.name} works`}>
      {!goesOn && <SpeakerLine author={author} at={at} seq={seq} turn={turn} />}
      <div class="words-body">
        {steps.map(({ seq: number, words, thoughts, calls }) => (
          <div key={number} class="work-step">
            {thoughts !== '' && (
              <details class="work-thoughts">
                <summary>Thoughts</summary>
                <LongText text={thoughts} />
              </details>
            )}
            {words.trim() !== '' && (
              <div dir="auto">
                <Markdown text={words} />
              </div>
            )}
            {calls.map((call) => (
              <Call key={call.id} call={call} />
            ))}
          </div>
        ))}
      </div>
    </article>
  );
});

const OUTCOMES = { done: 'done', failed: 'failed', lost: 'lost', waiting: 'waits for approval' };

function Call({ call }: { call: ReadCall }) {
  const { name, args, outcome, text, startedAt, endedAt } = call;
  const [isOpen, setOpen] = useState(false);
  const state = outcome ?? 'running';
  return (
    <div class={`call call-${state}`} data-call={call.id}>
      <button type="button" class="call-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? 'down' : 'right'} />
        <b>{name}</b>
        <span class="quiet clip call-args">{args === '{}' ? '' : args}</span>
        <span class="call-outcome">
          {outcome === null ? 'running' : OUTCOMES[outcome]}
          {endedAt !== null && outcome !== 'waiting' && (
            <span class="quiet"> {duration(endedAt - startedAt)}</span>
          )}
        </span>
      </button>
      {isOpen && (
        <div class="call-body">
          <ThreadLink result={text} />
          <Fields args={args} />
          {text !== null && <LongText text={text === '' ? '(no output)' : text} class="call-result" />}
        </div>
      )}
    </div>
  );
}

/** The link for a call that gave another agent a task. */
function ThreadLink({ result }: { result: string | null }) {
  const task = threadOfCall(result);
  if (task === null) return null;
  return (
    <p>
      <Go to={{ conversation: task.thread }}>The thread of {nameOf(task.assignee ?? '')}</Go>
    </p>
  );
}
