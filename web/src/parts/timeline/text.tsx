import { useEffect, useState } from 'preact/hooks';
import { Go } from '../../shared/go.tsx';
import type { Route } from '../../state/route.ts';
import { needThread } from '../../state/timeline/loaded-times.ts';
import { nestedIn, type Spans, type ThreadSpan } from '../../state/timeline/spans.ts';
import { nameOf } from '../../state/selection.ts';
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
      {isOpen && <Entries spans={spans} />}
    </details>
  );
}

function Entries({ spans }: { spans: Spans }) {
  useEffect(() => {
    for (const { threads } of spans.lanes)
      for (const { task } of threads.flatMap((thread) => [...nestedIn(thread)]))
        if (task.thread !== null) needThread(task.thread, task.endedAt === null);
  }, [spans]);
  return (
    <ol>
      {entries(spans).map(({ key, text, to }) => (
        <li key={key}>
          <Go to={to}>{text}</Go>
        </li>
      ))}
    </ol>
  );
}

interface Entry {
  key: string;
  at: number;
  text: string;
  to: Partial<Route>;
}

function entries({ lanes }: Spans): Entry[] {
  const all = lanes.flatMap(({ turns, threads, waits }): Entry[] => [
    ...turns.slice(-MOST).map((turn) => {
      const { title, lines } = wordsOf({ kind: 'turn', turn, thread: null });
      const text = [title, ...lines].join('; ');
      return { key: turn.id, at: turn.start, text, to: { turn: turn.id, event: null } };
    }),
    ...threads.flatMap((thread) => [...nestedIn(thread)]).map(entryOf),
    ...waits.map(({ task, start }) => {
      const text = `${nameOf(task.owner)} waits for a person: ${task.kind}, ${task.outcome ?? 'open'}`;
      return { key: task.id, at: start, text, to: placeOf(task.seq) };
    }),
  ]);
  return all.toSorted((a, b) => a.at - b.at).slice(-MOST);
}

function entryOf(span: ThreadSpan): Entry {
  const { task, givenIn, start } = span;
  const { title } = wordsOf({ kind: 'thread', span });
  const elsewhere = givenIn === null ? {} : { conversation: givenIn };
  return {
    key: `${task.thread} ${task.id}`,
    at: start,
    text: title,
    to: { ...elsewhere, ...placeOf(task.seq) },
  };
}

function placeOf(seq: number): Partial<Route> {
  return { event: seq, tab: 'raw' };
}
