import { hash } from 'node:crypto';
import pg from 'pg';
import { isMisled, isUsableAfter } from './postgres-error.ts';
import type { IdRange, TermCondition } from '../troupe.ts';

/** Only this module and `postgres-error.ts` import the driver. */
export type Value = string | number | boolean | null | readonly (string | number | null)[];

export interface Statement {
  /** Each connection parses a statement with a name once. */
  name?: string;
  text: string;
  /** Maximum wait for the answer, ms. Default: the limit of the connection. */
  query_timeout?: number;
}

export interface Queries {
  /** The rows of the answer. */
  rows<T extends object>(statement: Statement, values?: readonly Value[]): Promise<T[]>;
  /** The number of rows that were changed. */
  run(statement: Statement, values?: readonly Value[]): Promise<number>;
}

/** Connections to one database. Each call uses one of them; a broken one is replaced. */
export interface Database extends Queries {
  transaction<T>(work: (queries: Queries) => Promise<T>): Promise<T>;
  onLost(listener: () => void): void;
  close(): Promise<void>;
}

/** A named statement. Only for fixed texts, so that there are few names. */
export function prepared(text: string): Statement {
  return { name: `troupe-${hash('sha256', text, 'base64url').slice(0, 20)}`, text };
}

const INT8 = 20;
const TEXT = 25;
const TEXT_ARRAY = 1009;

/** Parsers of column types. Bigints become numbers, because those of Troupe are exact in JavaScript. `toValue` encodes texts. */
export const TYPES: pg.CustomTypesConfig = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === INT8) return Number;
    if (oid === TEXT) return fromStored;
    const parse = pg.types.getTypeParser(oid, format as 'text') as (stored: string) => unknown;
    if (oid === TEXT_ARRAY) return (stored: string) => (parse(stored) as string[]).map(fromStored);
    return parse;
  },
};

const MAX = Number.MAX_SAFE_INTEGER;

function toValue(value: Value): unknown {
  if (typeof value === 'string') return toStored(value);
  // Number columns hold whole numbers, but a bound of a query may be a fraction or too large.
  if (typeof value === 'number') return Math.floor(Math.min(Math.max(value, -MAX), MAX));
  return Array.isArray(value) ? value.map((each: Value) => toValue(each)) : value;
}

export function queriesOf(client: pg.ClientBase): Queries {
  const send = (statement: Statement, values: readonly Value[] = []) =>
    client.query({ ...statement, values: values.map(toValue) });
  return {
    rows: async <T>(statement: Statement, values?: readonly Value[]) =>
      (await send(statement, values)).rows as T[],
    run: async (statement, values) => (await send(statement, values)).rowCount ?? 0,
  };
}

export function openDatabase(config: pg.PoolConfig): Database {
  const pool = new pg.Pool({ ...config, types: TYPES });
  const listeners = new Set<() => void>();
  let closed: Promise<void> | undefined;
  /** Number of the first connection that may still be used; earlier ones are closed. */
  let oldest = 0;
  let opened = 0;
  const numbers = new WeakMap<pg.PoolClient, number>();
  const lost = () => {
    for (const listener of listeners) listener();
  };
  // Errors of an idle connection, and of one in use. Without listeners they would end the process.
  pool.on('error', lost);
  pool.on('connect', (client) => {
    numbers.set(client, (opened += 1));
    client.on('error', lost);
  });

  async function takeClient(): Promise<pg.PoolClient> {
    for (;;) {
      const client = await pool.connect();
      if ((numbers.get(client) ?? 0) >= oldest) return client;
      client.release(true);
    }
  }

  async function withClient<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    let isBroken = false;
    const client = await takeClient();
    try {
      return await work(client);
    } catch (error) {
      isBroken = !isUsableAfter(error);
      if (isBroken) lost();
      if (isMisled(error)) oldest = opened + 1;
      throw error;
    } finally {
      client.release(isBroken);
    }
  }

  return {
    rows: (statement, values) => withClient((client) => queriesOf(client).rows(statement, values)),
    run: (statement, values) => withClient((client) => queriesOf(client).run(statement, values)),
    transaction: (work) =>
      withClient((client) => inTransaction(queriesOf(client), () => work(queriesOf(client)))),
    onLost: (listener) => void listeners.add(listener),
    close: () => (closed ??= pool.end()),
  };
}

export async function inTransaction<T>(queries: Queries, work: () => Promise<T>): Promise<T> {
  await queries.run({ text: 'BEGIN' });
  try {
    const result = await work();
    await queries.run({ text: 'COMMIT' });
    return result;
  } catch (error) {
    // An unusable connection is closed, which also ends the transaction.
    if (isUsableAfter(error)) await queries.run({ text: 'ROLLBACK' });
    throw error;
  }
}

/** The conditions of a query and their values. A value never becomes a part of the text. */
export interface Conditions {
  values: Value[];
  text(): string;
  /** Adds a condition. Each '?' stands for one of the values. */
  add(text: string, ...values: Value[]): void;
  /** Adds the condition that the column is within one of the ranges; none if undefined. */
  addRanges(column: string, ranges: readonly IdRange[] | undefined): void;
  /** Adds the condition that the row follows this position in the order of the columns. */
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

/**
 * PostgreSQL stores text as UTF-8, which has no lone surrogates, and refuses NUL. These code units are escaped with this
 * character, which JSON texts do not contain. A text has exactly one stored form, so stored values can be compared.
 */
const MARK = '\u0001';
/** Hex digits after the mark. */
const DIGITS = 4;
const LONE_SURROGATE = /\p{Cs}/gu;

function toStored(text: string): string {
  if (text.isWellFormed() && !text.includes('\0') && !text.includes(MARK)) return text;
  return text.replaceAll(MARK, escaped).replaceAll('\0', escaped).replace(LONE_SURROGATE, escaped);
}

function fromStored(stored: string): string {
  if (!stored.includes(MARK)) return stored;
  const [first = '', ...rest] = stored.split(MARK);
  const unescaped = rest.map(
    (part) => String.fromCharCode(Number.parseInt(part.slice(0, DIGITS), 16)) + part.slice(DIGITS),
  );
  return first + unescaped.join('');
}

function escaped(unit: string): string {
  return MARK + unit.charCodeAt(0).toString(16).padStart(DIGITS, '0');
}

/**
 * Terms for indexes of PostgreSQL's full-text search. The tenant is part of every term, so that a search reads no entries of
 * another tenant.
 */
export function termsOf(tenant: string, terms: readonly string[]): string {
  return terms.map((term) => lexeme(tenant, term)).join(' ');
}

export function queryOf(tenant: string, terms: readonly TermCondition[]): string {
  return terms.map(({ term, whole }) => `${lexeme(tenant, term)}${whole ? '' : ':*'}`).join(' & ');
}

function lexeme(tenant: string, term: string): string {
  return `'${`${tenant}/${term}`.toWellFormed().replace(/['\\]/g, String.raw`$&$&`)}'`;
}
