import { StatementSync } from 'node:sqlite';
import { AGENTS, CONVERSATION, openCompany } from './company.ts';

/** The first turn of a process. One line of JSON. */
export interface FirstTurn {
  /** CPU time of the process up to the message, and from it to the reply. */
  startCpuMs: number;
  turnCpuMs: number;
  rssBytes: number;
  /** Rows of events read by the reply, and events that the prompt shows; null if it was not rendered again. */
  rows: number;
  shown: number | null;
  /** Whether the log gives the bytes of the prompt again; null if it was not rendered again. */
  verified: boolean | null;
}

/** Usage: `node first-turn.ts DIR [verify]`. Only with `verify` is the prompt rendered again, which reads the whole log. */
const [data = '', verify] = process.argv.slice(2);
const [agent] = AGENTS;
const rows = countRows();
const troupe = await openCompany(data);
// The garbage of the start is collected now: otherwise it is a matter of chance whether a turn pays for it.
globalThis.gc?.();
const ready = process.cpuUsage();
const { event } = await troupe.send(CONVERSATION, {
  author: { kind: 'user', id: 'ana', name: 'Ana' },
  to: [agent],
  content: 'What is next?',
});
await troupe.idle();
const [startCpuMs, turnCpuMs] = [ready, process.cpuUsage(ready)].map(
  ({ user, system }) => (user + system) / 1_000,
);
const measured = { startCpuMs, turnCpuMs, rssBytes: process.memoryUsage.rss(), rows: rows() };
const again = verify === undefined ? { shown: null, verified: null } : await renderAgain();
console.log(JSON.stringify({ ...measured, ...again }));
await troupe.close();

async function renderAgain(): Promise<Pick<FirstTurn, 'shown' | 'verified'>> {
  const { events } = await troupe.events(CONVERSATION, { after: event.seq });
  const sent = await troupe.promptOf(events.find(({ kind }) => kind === 'turn.started')?.turn ?? '');
  return { shown: new Set(sent.messages.flatMap(({ seqs }) => seqs)).size, verified: sent.verified };
}

/** Counts the rows of events that any statement returns. */
function countRows(): () => number {
  let count = 0;
  const isEvent = (row: unknown) => typeof row === 'object' && row !== null && 'recipients' in row;
  const statement = StatementSync.prototype as unknown as Record<
    'all' | 'get' | 'iterate',
    (this: unknown, ...values: unknown[]) => unknown
  >;
  const { all, get, iterate } = statement;
  Object.assign(statement, {
    all(...values: unknown[]) {
      const found = all.apply(this, values) as unknown[];
      count += found.filter(isEvent).length;
      return found;
    },
    get(...values: unknown[]) {
      const found = get.apply(this, values);
      if (isEvent(found)) count += 1;
      return found;
    },
    *iterate(...values: unknown[]) {
      for (const row of iterate.apply(this, values) as Iterable<unknown>) {
        if (isEvent(row)) count += 1;
        yield row;
      }
    },
  });
  return () => count;
}
