import { useState } from 'preact/hooks';
import { Go } from '../../shared/go.tsx';
import type { Spans } from '../../state/timeline/spans.ts';
import { nameOf } from '../../state/timeline/cursor.ts';
import { wordsOf } from './words.ts';

const MOST = 300;

/** The newest turns and tasks of the timeline as text, for screen readers. Rendered on request. */
export function TimelineText({ spans }: { spans: Spans }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details
      class="timeline-text"
      onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}
    >
      <summary>Timeline as text</summary>
      {isOpen && (
        <ol>
          {entries(spans).map(({ key, seq, text, turn }) => (
            <li key={key}>
              <Go to={turn === null ? { event: seq, tab: 'raw' } : { turn, event: null }}>{text}</Go>
            </li>
          ))}
        </ol>
      )}
    </details>
  );
}

function entries({ lanes }: Spans) {
  const all = lanes.flatMap(({ turns, threads, waits }) => [
    ...turns.slice(-MOST).map((turn) => {
      const { title, lines } = wordsOf({ kind: 'turn', turn, thread: null }, nameOf);
      const text = [title, ...lines].join('; ');
      return { key: turn.id, at: turn.start, seq: turn.seq, turn: turn.id as string | null, text };
    }),
    ...threads.map((span) => {
      const text = wordsOf({ kind: 'thread', span }, nameOf).title;
      return { key: span.task.id, at: span.start, seq: span.task.seq, turn: null, text };
    }),
    ...waits.map(({ task, start }) => {
      const text = `${nameOf(task.owner)} waits for a person: ${task.kind}, ${task.outcome ?? 'open'}`;
      return { key: task.id, at: start, seq: task.seq, turn: null, text };
    }),
  ]);
  return all.toSorted((a, b) => a.at - b.at).slice(-MOST);
}
