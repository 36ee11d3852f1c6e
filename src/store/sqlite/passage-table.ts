import type { FoundPassage, Passage, PassagesQuery } from '../passages.ts';
import { allRows, type Binding, type Database, getRow, runStatement } from './database.ts';
import { matchOf, termsText } from './term-index.ts';

/**
 * The numbers of passages give their order by time, so that the index of words yields the newest first and is left after
 * a page: the second of the last event, times the passages that one second may have.
 */
const OF_A_SECOND = 2 ** 20;
const LAST_SECOND = 2 ** 32;

export function createPassageTable(database: Database) {
  return { save: createSave(database), find: createFind(database) };
}

function createSave(database: Database) {
  const selectLog = database.prepare(
    'SELECT num, lastSeq FROM logs WHERE tenant = ? AND conversation = ? AND lastSeq >= ?',
  );
  const selectOld = database.prepare('SELECT num, last FROM passages WHERE log = ? AND first = ?');
  const selectNewest = database.prepare('SELECT max(num) AS num FROM passages WHERE num >= ? AND num < ?');
  const removeTerms = database.prepare('DELETE FROM terms WHERE rowid = ?');
  const remove = database.prepare('DELETE FROM passages WHERE num = ?');
  const insert = database.prepare('INSERT INTO passages (num, log, first, last, at) VALUES (?, ?, ?, ?, ?)');
  const insertTerms = database.prepare('INSERT INTO terms (rowid, text) VALUES (?, ?)');

  function freeNumber(at: number): number {
    for (let second = Math.min(LAST_SECOND, Math.max(0, Math.floor(at / 1_000))); ; second += 1) {
      const start = second * OF_A_SECOND;
      const newest = getRow<{ num: number | null }>(selectNewest, start, start + OF_A_SECOND)?.num ?? start;
      if (newest + 1 < start + OF_A_SECOND) return newest + 1;
    }
  }

  /** Inside a write only. */
  return function save(
    { tenant, conversation }: { tenant: string; conversation: string },
    { first, last, at, terms }: Passage,
  ): void {
    const log = getRow<{ num: number; lastSeq: number }>(selectLog, tenant, conversation, last);
    if (!log) return;
    const old = getRow<{ num: number; last: number }>(selectOld, log.num, first);
    // One that ends after the log is left from a removed conversation of the same id.
    if (old && old.last > last && old.last <= log.lastSeq) return;
    if (old) {
      runStatement(removeTerms, old.num);
      runStatement(remove, old.num);
    }
    const num = freeNumber(at);
    runStatement(insert, num, log.num, first, last, Math.trunc(at));
    runStatement(insertTerms, num, termsText(tenant, 'passage', terms));
  };
}

function createFind(database: Database) {
  return function find(query: PassagesQuery): FoundPassage[] {
    const { tenant, terms, from, ranges, limit, after } = query;
    if (limit <= 0 || ranges?.length === 0) return [];
    const where = ['terms MATCH ?', 'terms.rowid > 0', 'logs.tenant = ?'];
    const bindings: Binding[] = [matchOf(tenant, 'passage', terms), tenant];
    const also = (text: string, ...values: Binding[]) => {
      where.push(text);
      bindings.push(...values);
    };
    if (after !== undefined) also('terms.rowid < ?', Number(after));
    if (from !== undefined) also('passages.at >= ?', from);
    if (ranges) {
      const each = ranges.map(() => '(logs.conversation >= ? AND logs.conversation < ?)').join(' OR ');
      also(`(${each})`, ...ranges.flatMap((range) => [range.from, range.to]));
    }
    // CROSS keeps the order of the joins: the index of words is read first, backwards.
    const select = database.prepare(
      `SELECT passages.num, logs.conversation AS id, passages.first, passages.last, passages.at
       FROM terms CROSS JOIN passages ON passages.num = terms.rowid CROSS JOIN logs ON logs.num = passages.log
       WHERE ${where.join(' AND ')} ORDER BY terms.rowid DESC LIMIT ?`,
    );
    const rows = allRows<Omit<FoundPassage, 'place'> & { num: number }>(select, ...bindings, limit);
    return rows.map(({ num, ...row }) => ({ ...row, place: String(num) }));
  };
}
