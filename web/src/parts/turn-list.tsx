import { useEffect, useState } from 'preact/hooks';
import type { CompactionView, TurnView } from '../../../src/library/projection/model.ts';
import { messageOf, plural, whole } from '../shared/format.ts';
import { calls, shown, streams } from '../state/live.ts';
import { isFiltered, matchesTurn } from '../state/filter.ts';
import { readOlder } from '../state/older-turns.ts';
import { isPast } from '../state/past.ts';
import { go, route } from '../state/route.ts';
import { turns } from '../state/selection.ts';
import { useBreaks } from '../state/cache-breaks.ts';
import { listedTurns } from '../state/listed.ts';
import { orderOf, sortTurns, unitOf } from '../state/turn-figures.ts';
import { CompactionCard } from './compaction-card.tsx';
import { TurnHead } from './turn-head.tsx';
import { TurnRow } from './turn-row.tsx';
import { TurnTrend } from './turn-trend.tsx';
import '../style/turns.css';

const AT_ONCE = 60;

type Entry = { seq: number; turn: TurnView } | { seq: number; compaction: CompactionView };

/** Turns, newest first or sorted by a column. In the order of time, compactions stand between them. */
export function TurnList() {
  const [limit, setLimit] = useState(AT_ONCE);
  const filter = route.value;
  const compactions = shown.value?.compactions ?? [];
  const isContext = filter.kind === 'context';
  const matching = isContext ? [] : turns.value.filter((turn) => matchesTurn(turn, filter));
  const unit = unitOf(matching);
  const sorted = sortTurns(matching, orderOf(filter.sort));
  const broke = useBreaks(turns.value);
  useEffect(() => {
    listedTurns.value = sorted;
  });
  useEffect(() => () => void (listedTurns.value = null), []);
  const entries = entriesOf(sorted, compactions, filter);
  const chosen = entries.findIndex((entry) => 'turn' in entry && entry.turn.id === filter.turn);
  const count = Math.max(limit, chosen + 1);
  const total = shown.value?.totals.turns ?? 0;
  if (entries.length === 0) return <Nothing total={total} isContext={isContext} />;
  return (
    <div class="list-rows" id="rows">
      <TurnTrend turns={matching} unit={unit} isBroken={(id) => broke.has(id)} />
      <table class="turns" aria-label="Turns">
        <TurnHead unit={unit} />
        {entries.slice(0, count).map((entry) => (
          <EntryRow
            key={'turn' in entry ? entry.turn.id : `c${entry.seq}`}
            entry={entry}
            unit={unit}
            broke={broke}
          />
        ))}
      </table>
      {entries.length > count && (
        <button type="button" class="list-more" onClick={() => setLimit(count + AT_ONCE)}>
          Show {Math.min(AT_ONCE, entries.length - count)} more
        </button>
      )}
      {entries.length <= count && total > turns.value.length && !isContext && (
        <Older count={total - turns.value.length} onRead={() => setLimit(count + AT_ONCE)} />
      )}
    </div>
  );
}

/** Reads the turns before those that are listed. */
function Older({ count, onRead }: { count: number; onRead: () => void }) {
  const [problem, setProblem] = useState('');
  const [first] = turns.value;
  const read = () => {
    if (first) readOlder(first).then(onRead, (error: unknown) => setProblem(messageOf(error)));
  };
  return (
    <>
      <button type="button" class="list-more" onClick={read}>
        Show older turns ({whole(count)})
      </button>
      {problem !== '' && <p class="list-nothing problem">{problem}</p>}
    </>
  );
}

interface EntryRowProps {
  entry: Entry;
  unit: 'dollars' | 'tokens';
  broke: ReturnType<typeof useBreaks>;
}

function EntryRow({ entry, unit, broke }: EntryRowProps) {
  const { turn: chosen, event } = route.value;
  if ('compaction' in entry)
    return (
      <tbody>
        <tr>
          <td colSpan={4}>
            <CompactionCard compaction={entry.compaction} isOpen={entry.seq === event} />
          </td>
        </tr>
      </tbody>
    );
  const { id } = entry.turn;
  return (
    <TurnRow
      turn={entry.turn}
      isChosen={id === chosen}
      text={isPast.value ? null : (streams.value.get(id) ?? null)}
      calls={isPast.value ? null : (calls.value.get(id) ?? null)}
      unit={unit}
      broke={broke.get(id) ?? null}
    />
  );
}

/** The sorted turns, with the compactions between them in the order of time. */
function entriesOf(
  sorted: readonly TurnView[],
  compactions: readonly CompactionView[],
  filter: typeof route.value,
): Entry[] {
  const { column, isDescending } = orderOf(filter.sort);
  const isInTime = column === 'turn';
  const isShown = filter.kind === 'context' || (isInTime && (filter.kind === '' || filter.kind === '*'));
  const cards = (isShown ? compactions : [])
    .filter((one) => matchesCompaction(one, filter))
    .map((compaction) => ({ seq: compaction.seq, compaction }));
  const all: Entry[] = [...sorted.map((turn) => ({ seq: turn.from, turn })), ...cards];
  return isInTime ? all.toSorted((a, b) => (isDescending ? b.seq - a.seq : a.seq - b.seq)) : all;
}

function matchesCompaction(
  { agent, phase }: CompactionView,
  { by, problems, q }: typeof route.value,
): boolean {
  if (problems && phase !== 'failed') return false;
  return q === '' && (by === '' || by.split(',').includes(agent));
}

function Nothing({ total, isContext }: { total: number; isContext: boolean }) {
  if (!isFiltered(route.value)) return <p class="list-nothing quiet">No agent has had a turn yet.</p>;
  return (
    <p class="list-nothing quiet">
      {isContext ? 'This conversation needed no compaction.' : `None of ${plural(total, 'turn')} matches.`}{' '}
      <button type="button" class="button" onClick={() => go({ kind: '', q: '', problems: false, by: '' })}>
        Show all
      </button>
    </p>
  );
}
