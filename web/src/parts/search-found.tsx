import { useEffect, useState } from 'preact/hooks';
import { Choice } from '../shared/choice.tsx';
import { messageOf, moment, plural, whole } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { api, type Found, type SearchQuery } from '../state/api.ts';
import { isLost } from '../state/connection.ts';
import { PRESETS, rowsQuery } from '../state/filter.ts';
import { placeNamed, sinceOf } from '../state/inbox.ts';
import { go, route } from '../state/route.ts';
import { Since } from './since.tsx';

const PAUSE_MS = 250;

/** The filters of a search and what it finds, for the words in the address. */
export function SearchFound() {
  const { find, author, kind, since } = route.value;
  const [answer, setAnswer] = useState<Found | string | null>(null);
  const words = find.trim();
  const query = (): SearchQuery => ({
    q: words,
    author: author.trim(),
    kind: rowsQuery({ kind: kind || SAID, q: '', problems: false, by: '' }).kind,
    from: sinceOf(since),
  });
  useEffect(() => {
    let isOver = false;
    const timer = setTimeout(() => {
      api.search(query()).then(
        (found) => !isOver && setAnswer(found),
        (error: unknown) => !isOver && setAnswer(messageOf(error)),
      );
    }, PAUSE_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [words, author, kind, since]);
  const found = typeof answer === 'string' ? null : answer;
  return (
    <>
      <SearchFilters />
      <div role="status">
        {typeof answer === 'string' && <p class="problem">{answer}</p>}
        {found && <p class="quiet">{summaryOf(found)}</p>}
        {found?.hits.length === 0 && kind !== EVERY && <Go to={{ kind: EVERY }}>Search every event</Go>}
      </div>
      {found && <Hits hits={found.hits} />}
      {found?.next && (
        <button type="button" class="button" onClick={() => void more(query(), found, setAnswer)}>
          More hits
        </button>
      )}
    </>
  );
}

function SearchFilters() {
  const { author, kind, since } = route.value;
  const isFiltered = author !== '' || kind !== '' || since !== '';
  return (
    <fieldset class="home-filters" aria-label="Filters of the search" disabled={isLost.value}>
      <input
        type="text"
        aria-label="Author"
        placeholder="Author"
        value={author}
        onChange={(event) => go({ author: event.currentTarget.value.trim() })}
      />
      <Choice
        label="Kinds of events"
        of={PRESETS.filter(([id]) => id !== '')}
        value={kind || SAID}
        onChange={(to) => go({ kind: to === SAID ? '' : to })}
      />
      <Since value={since} />
      {isFiltered && (
        <button class="button" type="button" onClick={() => go({ author: '', kind: '', since: '' })}>
          Clear
        </button>
      )}
      <Go to={{ find: '', author: '', kind: '', since: '' }}>All conversations</Go>
    </fieldset>
  );
}

/** What is searched unless another kind is chosen: calls and receipts repeat the words of messages. */
const SAID = 'talk';
const EVERY = '*';

async function more(query: SearchQuery, found: Found, show: (answer: Found | string) => void) {
  try {
    const further = await api.search({ ...query, after: found.next ?? undefined });
    show({ ...further, hits: [...found.hits, ...further.hits] });
  } catch (error) {
    show(messageOf(error));
  }
}

function summaryOf({ hits, unread, next }: Found): string {
  const places = plural(new Set(hits.map(({ conversation }) => conversation)).size, 'conversation');
  const left = unread > 0 ? `, ${whole(unread)} not searched yet` : '';
  return `${next === null ? '' : 'the newest '}${plural(hits.length, 'hit')} in ${places}${left}`;
}

function Hits({ hits }: Pick<Found, 'hits'>) {
  return (
    <ul>
      {withQuotes(hits).map(({ hit, quotes }) => (
        <li key={`${hit.conversation}:${hit.row.seq}`}>
          <HitLink hit={hit} />
          {quotes.length > 0 && (
            <details class="search-quotes">
              <summary>quoted later, {plural(quotes.length, 'time')}</summary>
              {quotes.map((quote) => (
                <HitLink key={quote.row.seq} hit={quote} />
              ))}
            </details>
          )}
        </li>
      ))}
    </ul>
  );
}

function HitLink({ hit: { conversation, row, excerpt, marks } }: { hit: Hit }) {
  return (
    <Go to={{ conversation, list: 'events', kind: '*', event: row.seq, turn: row.turn, tab: 'raw' }}>
      <bdi>
        <b>{row.author}</b>
      </bdi>{' '}
      <Marked text={excerpt} marks={marks} />{' '}
      <span class="quiet" title={conversation}>
        {row.seq === 1 ? conversation : placeNamed(conversation)}, {moment(row.at)}, event {row.seq}
      </span>
    </Go>
  );
}

type Hit = Found['hits'][number];
/** Summaries, and what a turn was reminded of. */
const isQuote = ({ row }: Hit) => /^(compaction|baseline|turn\.started)/.test(row.kind);

/** What quotes something found before it in its conversation stands below that. */
function withQuotes(hits: readonly Hit[]): { hit: Hit; quotes: Hit[] }[] {
  const quotes = new Map<Hit, Hit[]>();
  const originalOf = (quote: Hit) =>
    hits
      .filter(
        (hit) => hit.conversation === quote.conversation && hit.row.seq < quote.row.seq && !isQuote(hit),
      )
      .reduce<Hit | null>((nearest, hit) => (nearest && nearest.row.seq > hit.row.seq ? nearest : hit), null);
  const own = hits.filter((hit) => {
    const original = isQuote(hit) ? originalOf(hit) : null;
    if (original) quotes.set(original, [...(quotes.get(original) ?? []), hit]);
    return !original;
  });
  return own.map((hit) => ({ hit, quotes: quotes.get(hit) ?? [] }));
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
