import { computed } from '@preact/signals';
import type { TurnView } from '../../../src/library/projection/model.ts';
import { dollarsFor, type PriceOf } from '../../../src/library/projection/standing.ts';
import { definedAgents } from './defined-agents.ts';

/** The numbers that the turn list shows and sorts by column. Null where unknown. */
export interface Figures {
  tokens: number | null;
  /** US dollars at the current price of the agent's model. */
  dollars: number | null;
  /** Share of the input that was read from the cache, 0 to 1. */
  cache: number | null;
  /** Duration, ms. */
  time: number | null;
}

const prices = computed(() => new Map(definedAgents.value.map(({ id, price }) => [id as string, price])));

/** US dollars at the current price of the agent's model. Null: its price is not known. */
export const priceOf: PriceOf = (agent, tokens) => {
  const price = prices.value.get(agent);
  return price ? dollarsFor(tokens, price) : null;
};

export function figuresOf({ agent, tokens, startedAt, endedAt }: TurnView): Figures {
  const { input, output, cacheRead } = tokens;
  const used = input + output;
  return {
    tokens: used > 0 ? used : null,
    dollars: used > 0 ? priceOf(agent, tokens) : null,
    cache: input > 0 ? cacheRead / input : null,
    time: endedAt === null ? null : endedAt - startedAt,
  };
}

/** The newest of the turns that read least of their prompt from the cache. An agent's first turn has nothing to read. */
export function leastCached(turns: readonly TurnView[]): TurnView | null {
  let least: TurnView | null = null;
  let share = 1;
  for (const turn of turns) {
    const { cache } = figuresOf(turn);
    if (turn.number === 1 || cache === null || cache > share) continue;
    [least, share] = [turn, cache];
  }
  return least;
}

/** Dollars if all of the turns have a price, else tokens: one unit, so that turns can be compared. */
export function unitOf(turns: readonly TurnView[]): 'dollars' | 'tokens' {
  const used = turns.map(figuresOf).filter(({ tokens }) => tokens !== null);
  return used.length > 0 && used.every(({ dollars }) => dollars !== null) ? 'dollars' : 'tokens';
}

export const COLUMNS = ['turn', 'cost', 'cache', 'time'] as const;
export type Column = (typeof COLUMNS)[number];

export interface Order {
  column: Column;
  isDescending: boolean;
}

/** The order that `sort` in the address names. */
export function orderOf(sort: string): Order {
  const column = COLUMNS.find((each) => each === sort.replace(/^-/, ''));
  return column ? { column, isDescending: sort.startsWith('-') } : { column: 'turn', isDescending: true };
}

/** Sorted by a column. Turns without a value always come last. */
export function sortTurns(turns: readonly TurnView[], { column, isDescending }: Order): TurnView[] {
  const unit = unitOf(turns);
  const keyed = turns.map((turn) => {
    const figures = figuresOf(turn);
    const key =
      column === 'turn'
        ? turn.from
        : column === 'cost'
          ? figures[unit]
          : figures[column === 'cache' ? 'cache' : 'time'];
    return { turn, key };
  });
  const sign = isDescending ? -1 : 1;
  return keyed
    .toSorted((a, b) => {
      if (a.key === null || b.key === null) return Number(a.key === null) - Number(b.key === null);
      return sign * (a.key - b.key) || b.turn.from - a.turn.from;
    })
    .map(({ turn }) => turn);
}
