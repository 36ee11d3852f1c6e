import {
  emptyRanks,
  type ListedStanding,
  STANDING_ORDERS,
  type StandingCounts,
  type StandingFilter,
  type StandingPage,
  standingPage,
  type NewStanding,
  type StandingsQuery,
} from '../standings.ts';
import {
  allRows,
  type Binding,
  type Database,
  fromStored,
  getRow,
  runStatement,
  type StoredText,
  toStored,
} from './database.ts';
import { matchOf, termsText } from './schema.ts';
import type { FoundPassage, Passage, PassagesQuery } from '../passages.ts';

/** From this number of conversations with the sought terms on, rows are read in the order of the list. */
const FEW = 2_000;

type StoredStanding = Omit<ListedStanding, 'agents' | 'data'> & { agents: string; data: StoredText };

/**
 * Standings, which are columns of `logs`. Ranks, orders, counts and terms are read from indexes; agent, owner and text are
 * compared in the rows that remain. If few conversations have the sought terms, their rows are read and sorted. If many have
 * them, rows are read in the order of the list, and each is checked for the terms.
 */
export function createStandingTable(database: Database) {
  return { save: createSave(database), seqOf: createSeqOf(database), ...createReads(database) };
}

function createSave(database: Database) {
  const selectWords = database.prepare(
    'SELECT num, words FROM logs WHERE tenant = ? AND conversation = ? AND standingSeq <= ? AND lastSeq >= ?',
  );
  const removeTerms = database.prepare('DELETE FROM terms WHERE rowid = ?');
  const insertTerms = database.prepare('INSERT INTO terms (rowid, text) VALUES (?, ?)');
  const update = database.prepare(
    `UPDATE logs SET standingSeq = ?, rank = ?, since = ?, cost = ?, spent = ?, owner = ?, agents = ?, words = ?, standing = ?
     WHERE tenant = ? AND conversation = ? AND standingSeq <= ? AND lastSeq >= ?`,
  );

  /** Inside a write only. */
  return function save(
    { tenant, conversation }: { tenant: string; conversation: string },
    { seq, rank, since, cost, spent, owner, agents, words, terms, data }: NewStanding,
  ): void {
    const found = getRow<{ num: number; words: string }>(selectWords, tenant, conversation, seq, seq);
    if (!found) return;
    const text = words.toWellFormed();
    const values = [seq, rank, since, cost, spent, owner.toWellFormed(), listed(agents), text];
    runStatement(update, ...values, toStored(data), tenant, conversation, seq, seq);
    // The words of a conversation hardly ever change, so most saves need not write the index of words.
    if (found.words === text) return;
    runStatement(removeTerms, -found.num);
    runStatement(insertTerms, -found.num, termsText(tenant, 'standing', terms));
  };
}

function createSeqOf(database: Database) {
  const select = database.prepare(
    'SELECT standingSeq AS seq FROM logs WHERE tenant = ? AND conversation = ?',
  );
  return ({ tenant, conversation }: { tenant: string; conversation: string }) =>
    getRow<{ seq: number }>(select, tenant, conversation)?.seq ?? 0;
}

function createReads(database: Database) {
  const selectBehind = database.prepare(
    `SELECT conversation AS id FROM logs INDEXED BY logs_behind WHERE tenant = ? AND lastSeq > standingSeq
     ORDER BY lastAt DESC, conversation DESC LIMIT ?`,
  );

  const selectFew = database.prepare(
    `SELECT count(*) AS count FROM (SELECT 1 FROM terms WHERE terms MATCH ? LIMIT ${FEW})`,
  );

  function readOf(filter: StandingFilter): { from: string; where: Conditions } {
    const { tenant, terms } = filter;
    const where = createConditions();
    if (!terms?.length) return { from: 'logs', where: addConditions(where, filter) };
    const match = matchOf(tenant, 'standing', terms);
    if ((getRow<{ count: number }>(selectFew, match)?.count ?? 0) < FEW) {
      where.bindings.push(match);
      const from = '(SELECT -rowid AS found FROM terms WHERE terms MATCH ?) CROSS JOIN logs ON num = found';
      return { from, where: addConditions(where, filter) };
    }
    where.push('num IN (SELECT -rowid FROM terms WHERE terms MATCH ?)', match);
    return { from: 'logs', where: addConditions(where, filter) };
  }

  function list(query: StandingsQuery): StandingPage {
    const { order, limit, after, ranges } = query;
    if (limit <= 0 || ranges?.length === 0) return { rows: [], next: null };
    const { keys, direction } = STANDING_ORDERS[order];
    const columns = [...keys, 'conversation'];
    const { from, where } = readOf(query);
    if (after) {
      const sign = direction === 'up' ? '>' : '<';
      where.push(
        `(${columns.join(', ')}) ${sign} (${columns.map(() => '?').join(', ')})`,
        ...after.keys,
        after.id,
      );
    }
    const sorted = columns.map((column) => `${column} ${direction === 'up' ? 'ASC' : 'DESC'}`).join(', ');
    const select = database.prepare(
      `SELECT conversation AS id, lastSeq AS head, lastAt AS at, standingSeq AS seq, rank, since, cost, spent, owner, agents, words,
       standing AS data FROM ${from} WHERE ${where.text()} ORDER BY ${sorted} LIMIT ?`,
    );
    const rows = allRows<StoredStanding>(select, ...where.bindings, limit + 1).map(standingOf);
    return standingPage(rows, query);
  }

  function count(filter: StandingFilter): StandingCounts {
    const ranks = emptyRanks();
    if (filter.ranges?.length === 0) return { ranks, behind: 0 };
    const { from, where } = readOf(filter);
    const select = database.prepare(
      `SELECT rank, count(*) AS count FROM ${from} WHERE ${where.text()} GROUP BY rank`,
    );
    for (const row of allRows<{ rank: number; count: number }>(select, ...where.bindings))
      ranks[row.rank] = row.count;
    const late = createConditions();
    late.push('tenant = ? AND lastSeq > standingSeq', filter.tenant);
    addRanges(late, filter);
    const selectLate = database.prepare(`SELECT count(*) AS count FROM logs WHERE ${late.text()}`);
    return { ranks, behind: getRow<{ count: number }>(selectLate, ...late.bindings)?.count ?? 0 };
  }

  return {
    list,
    count,
    behind: ({ tenant, limit }: { tenant: string; limit: number }) =>
      allRows<{ id: string }>(selectBehind, tenant, limit).map(({ id }) => id),
  };
}

type Conditions = ReturnType<typeof createConditions>;

function createConditions() {
  const texts: string[] = [];
  const bindings: Binding[] = [];
  return {
    bindings,
    text: () => texts.join(' AND '),
    push(text: string, ...values: Binding[]) {
      texts.push(text);
      bindings.push(...values);
    },
  };
}

function addConditions(where: Conditions, filter: StandingFilter): Conditions {
  const { tenant, ranks, agent, owner, from, to, text } = filter;
  where.push('tenant = ? AND standingSeq > 0', tenant);
  if (ranks) where.push(`rank IN (${ranks.map(() => '?').join(', ')})`, ...ranks);
  if (from !== undefined) where.push('since >= ?', from);
  if (to !== undefined) where.push('since < ?', to);
  if (agent !== undefined) where.push('instr(agents, ?) > 0', `,${agent},`);
  if (owner !== undefined) where.push('owner = ?', owner);
  if (text !== undefined) where.push('instr(words, ?) > 0', text.toWellFormed());
  addRanges(where, filter);
  return where;
}

function addRanges(where: Conditions, { ranges }: StandingFilter): void {
  if (!ranges) return;
  const each = ranges.map(() => '(conversation >= ? AND conversation < ?)').join(' OR ');
  where.push(`(${each})`, ...ranges.flatMap(({ from, to }) => [from, to]));
}

function listed(agents: readonly string[]): string {
  return agents.length === 0 ? '' : `,${agents.join(',')},`;
}

// Copied, because `node:sqlite` returns rows without a prototype.
function standingOf({ agents, data, ...row }: StoredStanding): ListedStanding {
  return { ...row, agents: agents === '' ? [] : agents.slice(1, -1).split(','), data: fromStored(data) };
}

/**
 * Numbers of passages grow with time, so that a search in the index of words finds the newest first and can stop after a page.
 * A number is the second of the last event times this maximum number of passages per second, plus a counter.
 */
const OF_A_SECOND = 2 ** 20;
const LAST_SECOND = 2 ** 32;

export function createPassageTable(database: Database) {
  return { save: createPassageSave(database), find: createFind(database) };
}

function createPassageSave(database: Database) {
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
    // A passage that ends after the log is left over from a removed conversation of the same id, and is replaced.
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
    // CROSS fixes the order of the joins, so that the index of words is read first, backwards.
    const select = database.prepare(
      `SELECT passages.num, logs.conversation AS id, passages.first, passages.last, passages.at
       FROM terms CROSS JOIN passages ON passages.num = terms.rowid CROSS JOIN logs ON logs.num = passages.log
       WHERE ${where.join(' AND ')} ORDER BY terms.rowid DESC LIMIT ?`,
    );
    const rows = allRows<Omit<FoundPassage, 'place'> & { num: number }>(select, ...bindings, limit);
    return rows.map(({ num, ...row }) => ({ ...row, place: String(num) }));
  };
}
