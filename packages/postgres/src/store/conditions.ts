import type { IdRange } from '../troupe.ts';
import type { Value } from './database.ts';

/** The conditions of a query and their values. A value never becomes a part of the text. */
export interface Conditions {
  values: Value[];
  text(): string;
  /** One more condition; each '?' is one of the values. */
  add(text: string, ...values: Value[]): void;
  /** The column is within one of the ranges; undefined: any. */
  addRanges(column: string, ranges: readonly IdRange[] | undefined): void;
  /** The row of these columns comes after the place. */
  addPlace(columns: readonly string[], sign: '<' | '>', place: readonly (string | number)[]): void;
}

export function createConditions(): Conditions {
  const all: string[] = [];
  const values: Value[] = [];
  const bind = (value: Value) => `$${values.push(value)}`;
  return {
    values,
    text: () => all.join(' AND '),
    add(text, ...given) {
      const left = given.values();
      all.push(text.replaceAll('?', () => bind(left.next().value ?? null)));
    },
    addRanges(column, ranges) {
      if (!ranges) return;
      const each = ranges.map(({ from, to }) => `(${column} >= ${bind(from)} AND ${column} < ${bind(to)})`);
      all.push(`(${each.join(' OR ')})`);
    },
    addPlace(columns, sign, place) {
      all.push(`(${columns.join(', ')}) ${sign} (${place.map(bind).join(', ')})`);
    },
  };
}
