import { useEffect, useState } from 'preact/hooks';
import { clock, plural, whole } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { api, type SearchAnswer } from '../state/api.ts';
import { isLost } from '../state/connection.ts';
import { go, route } from '../state/route.ts';

const PAUSE_MS = 250;

export function SearchAll() {
  const q = route.value.find;
  const [answer, setAnswer] = useState<SearchAnswer | string | null>(null);
  const words = q.trim();
  useEffect(() => {
    if (words === '') return setAnswer(null);
    let isOver = false;
    const timer = setTimeout(() => {
      api.search(words).then(
        (found) => !isOver && setAnswer(found),
        (error: unknown) => !isOver && setAnswer(messageOf(error)),
      );
    }, PAUSE_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [words]);
  const found = typeof answer === 'string' ? null : answer;
  return (
    <search class="search-all">
      <input
        id="search"
        type="search"
        aria-label="Search all conversations"
        placeholder="Search all conversations  /"
        value={q}
        disabled={isLost.value}
        onInput={(event) => go({ find: event.currentTarget.value }, { replace: true })}
      />
      <div role="status">
        {typeof answer === 'string' && <p class="problem">{answer}</p>}
        {found && <p class="quiet">{summaryOf(found)}</p>}
      </div>
      {found && <Hits hits={found.hits} />}
      {found?.next && (
        <button type="button" onClick={() => void more(words, found, setAnswer)}>
          More hits
        </button>
      )}
    </search>
  );
}

async function more(q: string, found: SearchAnswer, show: (answer: SearchAnswer | string) => void) {
  try {
    const further = await api.search(q, found.next ?? undefined);
    show({ ...further, hits: [...found.hits, ...further.hits] });
  } catch (error) {
    show(messageOf(error));
  }
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

function summaryOf({ hits, unread, next }: SearchAnswer): string {
  const places = plural(new Set(hits.map(({ conversation }) => conversation)).size, 'conversation');
  const left = unread > 0 ? `, ${whole(unread)} not searched yet` : '';
  return `${next === null ? '' : 'the newest '}${plural(hits.length, 'hit')} in ${places}${left}`;
}

function Hits({ hits }: Pick<SearchAnswer, 'hits'>) {
  return (
    <ul>
      {hits.map(({ conversation, row, excerpt, marks }) => (
        <li key={`${conversation}:${row.seq}`}>
          <Go to={{ conversation, list: 'events', kind: '*', event: row.seq, turn: row.turn, tab: 'raw' }}>
            <b>{conversation}</b> <span class="quiet">{`${row.seq}, ${clock(row.at)}`}</span>{' '}
            <Marked text={excerpt} marks={marks} />
          </Go>
        </li>
      ))}
    </ul>
  );
}

function Marked({ text, marks }: { text: string; marks: readonly [start: number, end: number][] }) {
  return (
    <span>
      {marks.map(([start, end], index) => [
        text.slice(marks[index - 1]?.[1] ?? 0, start),
        <mark key={start}>{text.slice(start, end)}</mark>,
      ])}
      {text.slice(marks.at(-1)?.[1] ?? 0)}
    </span>
  );
}
