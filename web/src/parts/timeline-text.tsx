import { Go } from '../shared/go.tsx';
import { useState } from 'preact/hooks';
import type { Layout } from '../state/timeline-layout.ts';

/** The timeline as text, for screen readers. Rendered on request. */
export function TimelineText({ layout }: { layout: Layout }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details
      class="timeline-text"
      onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}
    >
      <summary>Timeline as text</summary>
      {isOpen && (
        <ol>
          {entries(layout).map(({ key, seq, text, turn }) => (
            <li key={key}>
              <Go
                to={turn === null ? { event: seq, tab: 'raw' } : { turn, event: null }}
              >{`seq ${seq}: ${text}`}</Go>
            </li>
          ))}
        </ol>
      )}
    </details>
  );
}

function entries({ bars, arrows, dots }: Layout) {
  const all = [
    ...bars.map(({ turn }) => ({
      key: turn.id,
      seq: turn.from,
      turn: turn.id as string | null,
      text: [
        `turn ${turn.number} of ${turn.agent}, ${turn.status}`,
        ...(turn.missed ? [`had missed ${turn.missed.count}`] : []),
        ...(turn.error ? [turn.error.code] : []),
      ].join(', '),
    })),
    ...arrows.map(({ seq, to, title }) => ({ key: `a${seq}-${to}`, seq, turn: null, text: afterSeq(title) })),
    ...dots.map(({ seq, kind, title }) => ({ key: `${kind}${seq}`, seq, turn: null, text: afterSeq(title) })),
  ];
  return all.toSorted((a, b) => a.seq - b.seq);
}

function afterSeq(title: string): string {
  return title.slice(title.indexOf(': ') + 2);
}
