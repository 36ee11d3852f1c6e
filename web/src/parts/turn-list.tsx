import { useState } from 'preact/hooks';
import type { CompactionView, TurnView } from '../../../src/projection/model.ts';
import { plural } from '../shared/format.ts';
import { calls, shown, streams } from '../state/live.ts';
import { isFiltered, matchesTurn } from '../state/filter.ts';
import { isPast } from '../state/past.ts';
import { go, route } from '../state/route.ts';
import { turns } from '../state/selection.ts';
import { CompactionCard } from './compaction-card.tsx';
import { TurnRow } from './turn-row.tsx';

const AT_ONCE = 60;

type Entry = { seq: number; turn: TurnView } | { seq: number; compaction: CompactionView };

/** Turns, newest first, with compactions at their place between them. */
export function TurnList() {
  const [limit, setLimit] = useState(AT_ONCE);
  const filter = route.value;
  const compactions = shown.value?.compactions ?? [];
  const isContext = filter.kind === 'context';
  const matching = isContext ? [] : turns.value.filter((turn) => matchesTurn(turn, filter));
  const entries: Entry[] = [
    ...matching.map((turn) => ({ seq: turn.from, turn })),
    ...(isContext || filter.kind === '' || filter.kind === '*' ? compactions : [])
      .filter((one) => matchesCompaction(one, filter))
      .map((compaction) => ({ seq: compaction.seq, compaction })),
  ].toSorted((a, b) => b.seq - a.seq);
  const chosen = entries.findIndex((entry) => 'turn' in entry && entry.turn.id === filter.turn);
  const count = Math.max(limit, chosen + 1);
  const total = shown.value?.totals.turns ?? 0;
  if (entries.length === 0) return <Nothing total={total} isContext={isContext} />;
  return (
    <div class="list-rows" id="rows">
      <ul>
        {entries.slice(0, count).map((entry) =>
          'turn' in entry ? (
            <TurnRow
              key={entry.turn.id}
              turn={entry.turn}
              isChosen={entry.turn.id === filter.turn}
              text={isPast.value ? null : (streams.value.get(entry.turn.id) ?? null)}
              calls={isPast.value ? null : (calls.value.get(entry.turn.id) ?? null)}
            />
          ) : (
            <li key={`c${entry.seq}`}>
              <CompactionCard compaction={entry.compaction} isOpen={entry.seq === filter.event} />
            </li>
          ),
        )}
      </ul>
      {entries.length > count && (
        <button type="button" class="list-more" onClick={() => setLimit(count + AT_ONCE)}>
          Show {Math.min(AT_ONCE, entries.length - count)} older
        </button>
      )}
      {entries.length <= count && total > turns.value.length && !isContext && (
        <button type="button" class="list-more" onClick={() => go({ list: 'events', kind: '*' })}>
          {plural(total - turns.value.length, 'older turn')}: see the events
        </button>
      )}
    </div>
  );
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
