import { signal } from '@preact/signals';
import type { Row, TurnView } from '../../../src/library/projection/model.ts';
import { api } from './api.ts';
import { useFetched } from './fetched.ts';
import { onEvents } from './live.ts';
import { conversation } from './route.ts';

/** Kinds of the events after which a prompt no longer begins with the whole previous one. */
const KINDS = 'baseline,prune';
const MOST = 500;

const arrived = signal(0);
onEvents((events) => {
  if (events.some(({ kind }) => kind === 'baseline' || kind === 'prune')) arrived.value += 1;
});

/** The event that broke the cache, by turn. */
export function useBreaks(turns: readonly TurnView[]): ReadonlyMap<string, Row> {
  const id = conversation.value;
  const key = id === null ? null : `breaks ${id} ${arrived.value}`;
  const found = useFetched(key, null, () => api.rows(id ?? '', { kind: KINDS, limit: MOST }));
  const broke = new Map<string, Row>();
  if (found.state !== 'there') return broke;
  for (const row of found.value.rows) {
    const turn = turnOf(row, turns);
    if (turn && !broke.has(turn.id)) broke.set(turn.id, row);
  }
  return broke;
}

/** The first turn whose prompt the event changed. The events before an agent's first turn break nothing. */
function turnOf({ seq, turn: id, agent, author }: Row, turns: readonly TurnView[]): TurnView | undefined {
  if (id !== null) return turns.find((turn) => turn.id === id);
  const own = turns.filter((turn) => turn.agent === agent || turn.agent === author);
  const next = own.find(({ from, to }) => from > seq || to === null || to > seq);
  return next && (next.number > 1 || next.from < seq) ? next : undefined;
}
