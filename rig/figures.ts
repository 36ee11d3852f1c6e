import { LEASE_MS, SWEEP_MS } from './agents.ts';
import type { Counts } from './count-conversation.ts';
import type { Fault } from './faults.ts';
import { percentile, type Recovered } from './recovery.ts';

/** The result of a run: one line, or with `--json` one object. */
export interface Figures {
  seconds: number;
  conversations: number;
  triggers: number;
  turns: number;
  failedTurns: number;
  cancelledTurns: number;
  events: number;
  kills: number;
  stops: number;
  queueLosses: number;
  connectionResets: number;
  failedStarts: number;
  posts: number;
  duplicatesPosted: number;
  toolCalls: number;
  lostCallsFlagged: number;
  unanswered: number;
  violations: number;
  answerP50Ms: number;
  answerP99Ms: number;
  /** How many turns the recovery figures stand on. */
  recovered: number;
  recoveryP50Ms: number;
  recoveryP99Ms: number;
  /** The same of what was broken off while fewer than `CROWD` actors waited: recovery without the queue. */
  recoveredUncrowded: number;
  recoveryUncrowdedP99Ms: number;
  /** What the last is held against: a lease and a sweep, with the sweep's jitter. */
  recoveryLimitMs: number;
  quietAfterSeconds: number;
  seed: number;
}

/** Sweeps are a quarter of their pause apart at random. */
export const RECOVERY_LIMIT_MS = LEASE_MS + 1.25 * SWEEP_MS;

/** Actors that wait: about three times as many as are served at once. */
export const CROWD = 40;

export interface RunTotals {
  seconds: number;
  seed: number;
  conversations: number;
  counts: Counts;
  faults: readonly Fault[];
  failedStarts: number;
  posts: readonly { tries: number }[];
  violations: number;
  recovered: readonly Recovered[];
  quietAfterMs: number;
}

export function figuresOf(run: RunTotals): Figures {
  const { counts, faults, posts } = run;
  const recoveryMs = run.recovered.map(({ ms }) => ms);
  const uncrowdedMs = run.recovered.filter(({ backlog }) => backlog < CROWD).map(({ ms }) => ms);
  const times = (...what: Fault['what'][]) => faults.filter((fault) => what.includes(fault.what)).length;
  return {
    seconds: Math.round(run.seconds),
    conversations: run.conversations,
    triggers: counts.triggers,
    turns: counts.turns,
    failedTurns: counts.failed,
    cancelledTurns: counts.aborted,
    events: counts.events,
    kills: times('kill'),
    stops: times('stop'),
    queueLosses: times('wipe queue', 'cut queue file'),
    connectionResets: times('reset connections'),
    failedStarts: run.failedStarts,
    posts: posts.length,
    duplicatesPosted: posts.reduce((sum, { tries }) => sum + Math.max(0, tries - 1), 0),
    toolCalls: counts.calls,
    lostCallsFlagged: counts.lost,
    unanswered: counts.unanswered,
    violations: run.violations,
    answerP50Ms: percentile(counts.answerMs, 0.5),
    answerP99Ms: percentile(counts.answerMs, 0.99),
    recovered: recoveryMs.length,
    recoveryP50Ms: percentile(recoveryMs, 0.5),
    recoveryP99Ms: percentile(recoveryMs, 0.99),
    recoveredUncrowded: uncrowdedMs.length,
    recoveryUncrowdedP99Ms: percentile(uncrowdedMs, 0.99),
    recoveryLimitMs: RECOVERY_LIMIT_MS,
    quietAfterSeconds: Math.round(run.quietAfterMs / 1_000),
    seed: run.seed,
  };
}

export function figuresLine(figures: Figures): string {
  const { answerP50Ms, answerP99Ms, recovered, recoveryP50Ms, recoveryP99Ms } = figures;
  const { recoveredUncrowded, recoveryUncrowdedP99Ms, recoveryLimitMs } = figures;
  return [
    `${figures.seconds} s`,
    `${figures.triggers} triggers`,
    `${figures.conversations} conversations`,
    `${figures.turns} turns (${figures.failedTurns} failed, ${figures.cancelledTurns} cancelled)`,
    `${figures.kills} kills`,
    `${figures.stops} stops`,
    `${figures.queueLosses} queue losses`,
    `${figures.connectionResets} connection resets`,
    `${figures.duplicatesPosted} duplicates posted`,
    `${figures.toolCalls} tool calls`,
    `${figures.lostCallsFlagged} lost calls flagged`,
    `${figures.unanswered} unanswered`,
    `${figures.violations} violations`,
    `answer p50 ${answerP50Ms} p99 ${answerP99Ms} ms`,
    `recovery p50 ${recoveryP50Ms} p99 ${recoveryP99Ms} ms of ${recovered}`,
    `with fewer than ${CROWD} actors waiting p99 ${recoveryUncrowdedP99Ms} ms of ${recoveredUncrowded} (lease + sweep ${recoveryLimitMs} ms)`,
    `seed ${figures.seed}`,
  ].join(', ');
}
