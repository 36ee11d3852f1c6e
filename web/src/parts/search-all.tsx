import { useEffect, useState } from 'preact/hooks';
import { clock, plural } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { api, type SearchAnswer } from '../state/api.ts';

const PAUSE_MS = 250;

/** Searches the text of all conversations. */
export function SearchAll() {
  const [q, setQ] = useState('');
  const [answer, setAnswer] = useState<SearchAnswer | string | null>(null);
  useEffect(() => {
    if (q.trim() === '') return setAnswer(null);
    let isOver = false;
    const timer = setTimeout(() => {
      api.search(q.trim()).then(
        (found) => !isOver && setAnswer(found),
        (error: unknown) => !isOver && setAnswer(error instanceof Error ? error.message : String(error)),
      );
    }, PAUSE_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [q]);
  return (
    <search class="search-all">
      <input
        id="search"
        type="search"
        aria-label="Search all conversations"
        placeholder="Search all conversations  /"
        value={q}
        onInput={(event) => setQ(event.currentTarget.value)}
      />
      <div role="status">
        {typeof answer === 'string' && <p class="problem">{answer}</p>}
        {answer !== null && typeof answer === 'object' && (
          <p class="quiet">
            {plural(answer.hits.length, 'hit')} in {plural(answer.searched.conversations, 'conversation')}
            {answer.partial && ', not all of them were searched'}
          </p>
        )}
      </div>
      {answer !== null && typeof answer === 'object' && (
        <ul>
          {answer.hits.map(({ conversation, row, excerpt }) => (
            <li key={`${conversation}:${row.seq}`}>
              <Go
                to={{ conversation, list: 'events', kind: '*', event: row.seq, turn: row.turn, tab: 'raw' }}
              >
                <b>{conversation}</b> <span class="quiet">{`${row.seq}, ${clock(row.at)}`}</span> {excerpt}
              </Go>
            </li>
          ))}
        </ul>
      )}
    </search>
  );
}
