import { systemClock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';
import { DEFAULT_TENANT, type TenantId } from '../../events/index.ts';
import type { LogProblem, LogVerification } from '../../store/store.ts';
import { openVerifySource, type VerifySource } from '../client/verify-source.ts';
import { count, number, paint, print, printable, printHint, printJson } from '../render/output.ts';

interface VerifyOptions {
  /** Only these conversations; empty: all. */
  conversations: readonly string[];
  url?: string | undefined;
  data?: string | undefined;
  json?: boolean | undefined;
}

type Finding = LogProblem & { tenant?: TenantId; conversation: string };

interface Totals {
  conversations: number;
  events: number;
  /** Events without a chain value. */
  unchained: number;
  problemCount: number;
  /** At most `MOST_LISTED`. */
  problems: Finding[];
  /** Conversations whose chain begins more than once, at most `MOST_LISTED`, with the seqs. */
  interrupted: { tenant?: TenantId; conversation: string; begins: number[] }[];
}

const MOST_LISTED = 1_000;
const PROGRESS_MS = 2_000;

/** Verifies stored conversations one after the other, in parts, so that memory does not grow with them. */
export async function verify({ conversations: named, json, ...place }: VerifyOptions): Promise<void> {
  const source = await openVerifySource(place);
  const totals: Totals = {
    conversations: 0,
    events: 0,
    unchained: 0,
    problemCount: 0,
    problems: [],
    interrupted: [],
  };
  const showProgress = createProgress(totals);
  const missing = new Set(named);
  try {
    for (const tenant of await source.tenants()) {
      for await (const conversation of named.length > 0 ? named : source.conversations(tenant))
        if (await verifyOne(source, totals, { tenant, conversation }, showProgress))
          missing.delete(conversation);
    }
  } finally {
    await source.close();
  }
  for (const conversation of missing)
    throw new TroupeError('conversation_unknown', `there is no conversation "${conversation}"`, {
      conversation,
    });
  const isWell = totals.problemCount === 0;
  if (json) printJson({ ok: isWell, ...totals });
  else printTotals(totals);
  if (!isWell) process.exitCode = 1;
}

/** False if there is no such conversation. */
async function verifyOne(
  source: VerifySource,
  totals: Totals,
  { tenant, conversation }: { tenant: TenantId | null; conversation: string },
  showProgress: () => void,
): Promise<boolean> {
  const place = { ...(tenant !== null && tenant !== DEFAULT_TENANT && { tenant }), conversation };
  const begins: number[] = [];
  for (let after: number | null = 0; after !== null;) {
    const part: LogVerification | null = await source
      .verify(tenant, conversation, after)
      .catch(unknownAsNull);
    if (!part) return after > 0;
    if (after === 0) totals.conversations += 1;
    totals.events += part.events;
    totals.unchained += part.unchained;
    totals.problemCount += part.problemCount;
    for (const problem of part.problems)
      if (totals.problems.length < MOST_LISTED) totals.problems.push({ ...place, ...problem });
    if (begins.length < MOST_LISTED) begins.push(...part.begins);
    showProgress();
    after = part.next;
  }
  if (begins.length > 1 && totals.interrupted.length < MOST_LISTED)
    totals.interrupted.push({ ...place, begins });
  return true;
}

/** It was deleted meanwhile, or another tenant has it. */
function unknownAsNull(error: unknown): null {
  if (error instanceof TroupeError && error.code === 'conversation_unknown') return null;
  throw error;
}

/** Reports on stderr every few seconds. */
function createProgress(totals: Totals): () => void {
  let last = systemClock.monotonic();
  return () => {
    const now = systemClock.monotonic();
    if (now - last < PROGRESS_MS) return;
    last = now;
    printHint(`verified ${count(totals.conversations, 'conversation')}, ${count(totals.events, 'event')}`);
  };
}

function printTotals(totals: Totals): void {
  for (const { tenant, conversation, ...problem } of totals.problems) {
    const where = tenant === undefined ? conversation : `${tenant}/${conversation}`;
    print(`${paint('red', 'failed ')}  ${printable(where)}  ${printable(problemText(problem))}`);
  }
  const more = totals.problemCount - totals.problems.length;
  if (more > 0) print(`${paint('red', 'failed ')}  and ${number(more)} more`);
  for (const { tenant, conversation, begins } of totals.interrupted) {
    const where = tenant === undefined ? conversation : `${tenant}/${conversation}`;
    const text = `the chain begins again at event ${begins.slice(1).join(', ')}: an older version wrote before it, or chain values were removed`;
    print(`${paint('yellow', 'warning')}  ${printable(where)}  ${text}`);
  }
  const { conversations, events, unchained, problemCount } = totals;
  const found = problemCount === 0 ? 'no damage found' : `${count(problemCount, 'problem')} found`;
  const old = unchained === 0 ? '' : `; ${count(unchained, 'event')} without a chain value`;
  const mark = problemCount === 0 ? paint('green', 'ok     ') : paint('red', 'failed ');
  print(`${mark}  ${count(conversations, 'conversation')}, ${count(events, 'event')}: ${found}${old}`);
}

function problemText(problem: LogProblem): string {
  if (problem.kind !== 'missing')
    return `event ${problem.seq} (${problem.id}) is ${problem.kind}: ${problem.reason}`;
  const { seq, upTo } = problem;
  return seq === upTo ? `event ${seq} is missing` : `events ${seq} to ${upTo} are missing`;
}
