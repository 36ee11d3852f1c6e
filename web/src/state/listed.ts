import { signal } from '@preact/signals';
import type { TurnView } from '../../../src/library/projection/model.ts';
import { isFold } from './fold-noise.ts';
import { matchesTurn } from './filter.ts';
import { middle } from './middle.ts';
import { route } from './route.ts';
import type { RowSource } from './row-source.ts';
import { selectEvent, selectTurn, turns } from './selection.ts';

/** The visible list of events, for the keyboard. */
export const listed = signal<RowSource | null>(null);
/** The turns in the order of their list; null while the list is not shown. */
export const listedTurns = signal<readonly TurnView[] | null>(null);

/** Selects the row below (1) or above (-1) the selected one. */
export function moveInList(by: 1 | -1): void {
  const { event, turn } = route.peek();
  if (middle.peek() !== 'events') {
    const newest = () =>
      turns
        .peek()
        .filter((each) => matchesTurn(each, route.peek()))
        .toReversed();
    const seen = (middle.peek() === 'turns' && listedTurns.peek()) || newest();
    const index = seen.findIndex(({ id }) => id === turn);
    selectTurn(seen[index < 0 ? 0 : Math.max(0, Math.min(seen.length - 1, index + by))]);
    return;
  }
  const source = listed.peek();
  if (!source) return;
  const index = event === null ? source.count() : source.indexOf(event);
  for (let next = index + by; next >= 0 && next < source.count(); next += by) {
    const line = source.lineAt(next);
    if (!line) return;
    if (!isFold(line)) return selectEvent(line.seq, line.turn);
  }
}

/** Selects the next or previous turn, of any agent. */
export function moveInTurns(by: 1 | -1): void {
  const all = turns.peek();
  const index = all.findIndex(({ id }) => id === route.peek().turn);
  selectTurn(index < 0 ? all.at(-1) : all[index + by]);
}
