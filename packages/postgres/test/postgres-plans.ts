import pg from 'pg';
import { vi } from 'vitest';
import type { PostgresStage } from './postgres-stage.ts';

/** A statement as the driver sent it. */
export interface SentStatement {
  text: string;
  values: unknown[];
}

const PLANNED = /^\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b/;

/** Records what every client sends. The returned function stops that and returns one statement per text. */
export function recordStatements(): () => SentStatement[] {
  const spy = vi.spyOn(pg.Client.prototype, 'query');
  return () => {
    const sent = spy.mock.calls.map(([first]) => first as unknown as Partial<SentStatement>);
    spy.mockRestore();
    const seen = new Map<string, SentStatement>();
    for (const { text = '', values = [] } of sent)
      if (PLANNED.test(text) && !seen.has(text)) seen.set(text, { text, values });
    return [...seen.values()];
  };
}

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  Plans?: Plan[];
}

/** Fills all tables with so many rows that an index pays, and updates the statistics by which the server plans. */
const FILL = `
  INSERT INTO t.conversations (tenant, conversation, head, at) SELECT 'acme', 'full' || n, 1, n FROM many AS n;
  INSERT INTO t.standings SELECT 'acme', 'full' || n, n % 5, n, n, n, '', '{}', '', '', '' FROM many AS n;
  INSERT INTO t.passages SELECT 'acme', 'full' || n, 1, 1, n, '' FROM many AS n;
  INSERT INTO t.events SELECT 'acme', 'full' || n % 100, n, n, n, '', '{a}', true, '', '', 0, '', '' FROM many AS n;
  INSERT INTO t.actors SELECT 'acme', 'full' || n, 'a', 1, '', 1, 1, NULL, NULL, NULL, false, NULL, '' FROM many AS n;
  INSERT INTO t.entries SELECT 'acme', 'journal', 'full' || n, n, '' FROM many AS n;
  ANALYZE t.conversations, t.standings, t.passages, t.events, t.actors, t.entries`;

export function fillTables(stage: Pick<PostgresStage, 'sql'>): Promise<object[]> {
  return stage.sql(FILL.replaceAll('FROM many', 'FROM generate_series(1, 5000)'));
}

/** Explains statements with sequential scans turned off. Returns the reasons to refuse a plan. */
export async function explainStatements(url: string, statements: Iterable<SentStatement>): Promise<string[]> {
  const client = new pg.Client(url);
  await client.connect();
  const problems: string[] = [];
  try {
    await client.query("SELECT set_config('enable_seqscan', 'off', false)");
    const indexes = await client.query<{ name: string; whole: boolean; first: string }>(
      `SELECT relname AS name, indpred IS NULL AS whole, pg_get_indexdef(indexrelid, 1, true) AS first
       FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid`,
    );
    const columns = new Map(
      indexes.rows.filter(({ whole }) => whole).map(({ name, first }) => [name, first]),
    );
    for (const { text, values } of statements) {
      const answer = await client.query({ text: `EXPLAIN (FORMAT JSON) ${text}`, values });
      const [explained] = (answer.rows as { 'QUERY PLAN': [{ Plan: Plan }] }[])[0]!['QUERY PLAN'];
      for (const problem of problemsOf(explained.Plan, columns)) problems.push(`${problem}: ${text}`);
    }
  } finally {
    await client.end();
  }
  return problems;
}

/** `columns` has the first column of each index that has all rows of its table. */
function problemsOf(plan: Plan, columns: ReadonlyMap<string, string>): string[] {
  const below = (plan.Plans ?? []).flatMap((each) => problemsOf(each, columns));
  const index = plan['Index Name'] ?? '';
  const first = columns.get(index);
  if (plan['Node Type'] === 'Seq Scan') return [`reads the whole table ${plan['Relation Name']}`, ...below];
  if (first !== undefined && !plan['Index Cond']?.includes(first))
    return [`reads the whole index ${index}`, ...below];
  return below;
}
