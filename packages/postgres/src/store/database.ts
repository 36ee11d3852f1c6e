import { hash } from 'node:crypto';
import pg from 'pg';
import { isMisled, isUsableAfter } from './postgres-error.ts';
import type { IdRange, TermCondition } from '../troupe.ts';

/** Only this module and `postgres-error.ts` import the driver. */
export type Value = string | number | boolean | null | readonly (string | number | null)[];

export interface Statement {
  /** Statements with a name are parsed once per connection. */
  name?: string;
  text: string;
  /** Maximum wait for the answer, ms; default: that of the connection. */
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

/** For fixed texts, of which there are few. */
export function prepared(text: string): Statement {
  return { name: `troupe-${hash('sha256', text, 'base64url').slice(0, 20)}`, text };
}

const INT8 = 20;
const TEXT = 25;
const TEXT_ARRAY = 1009;

/** Whole numbers of Troupe are exact in JavaScript. Texts are decoded here, and encoded in `toValue`. */
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
  // Columns of numbers are whole. A bound of a query may lie between them or beyond.
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
  /** Connections opened before this one are not used again. */
  let oldest = 0;
  let opened = 0;
  const numbers = new WeakMap<pg.PoolClient, number>();
  const lost = () => {
    for (const listener of listeners) listener();
  };
  // Of an idle connection, and of one in use. Without listeners the process would end.
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
    // A broken connection is closed, which ends the transaction as well.
    if (isUsableAfter(error)) await queries.run({ text: 'ROLLBACK' });
    throw error;
  }
}

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

/**
 * PostgreSQL stores text as UTF-8, which has no lone surrogates, and never a NUL. These units are escaped with a character
 * that JSON texts do not contain. A text has exactly one stored form, so stored values can be compared.
 */
const MARK = '\u0001';
/** Digits after the mark. */
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
 * Terms in indexes of PostgreSQL's full-text search. The tenant is part of every term, so that one tenant's search reads no
 * other's entries.
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
