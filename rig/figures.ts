import type { Counts } from './count-conversation.ts';
import type { Fault } from './faults.ts';
import { RECOVERY_LIMIT_MS } from './goals.ts';
import { percentile } from './recovery.ts';

/** The result of a run: one line, or one object with `--json`. */
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
  databaseFailovers: number;
  failedStarts: number;
  posts: number;
  duplicatesPosted: number;
  toolCalls: number;
  lostCallsFlagged: number;
  unanswered: number;
  violations: number;
  answerP50Ms: number;
  answerP99Ms: number;
  /** Number of turns behind the recovery figures: those of the phase without load and other faults. */
  recovered: number;
  recoveryP50Ms: number;
  recoveryP99Ms: number;
  /** The limit of the recovery time. */
  recoveryLimitMs: number;
  /**
   * The same for the main run. Broken turns are found as soon there, but most then wait for a free worker, or are hit
   * again.
   */
  recoveredUnderLoad: number;
  recoveryUnderLoadP50Ms: number;
  recoveryUnderLoadP99Ms: number;
  quietAfterSeconds: number;
  seed: number;
}

export interface RunTotals {
  seconds: number;
  seed: number;
  conversations: number;
  counts: Counts;
  faults: readonly Fault[];
  failedStarts: number;
  posts: readonly { tries: number }[];
  violations: number;
  /** Milliseconds. */
  recovered: readonly number[];
  recoveredUnderLoad: readonly number[];
  quietAfterMs: number;
}

export function figuresOf(run: RunTotals): Figures {
  const { counts, faults, posts, recovered, recoveredUnderLoad } = run;
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
    queueLosses: times('wipe queue', 'cut queue file', 'fail over queue'),
    connectionResets: times('reset connections'),
    databaseFailovers: times('fail over database'),
    failedStarts: run.failedStarts,
    posts: posts.length,
    duplicatesPosted: posts.reduce((sum, { tries }) => sum + Math.max(0, tries - 1), 0),
    toolCalls: counts.calls,
    lostCallsFlagged: counts.lost,
    unanswered: counts.unanswered,
    violations: run.violations,
    answerP50Ms: percentile(counts.answerMs, 0.5),
    answerP99Ms: percentile(counts.answerMs, 0.99),
    recovered: recovered.length,
    recoveryP50Ms: percentile(recovered, 0.5),
    recoveryP99Ms: percentile(recovered, 0.99),
    recoveryLimitMs: RECOVERY_LIMIT_MS,
    recoveredUnderLoad: recoveredUnderLoad.length,
    recoveryUnderLoadP50Ms: percentile(recoveredUnderLoad, 0.5),
    recoveryUnderLoadP99Ms: percentile(recoveredUnderLoad, 0.99),
    quietAfterSeconds: Math.round(run.quietAfterMs / 1_000),
    seed: run.seed,
  };
}

export function figuresLine(figures: Figures): string {
  const { answerP50Ms, answerP99Ms, recovered, recoveryP50Ms, recoveryP99Ms, recoveryLimitMs } = figures;
  const { recoveredUnderLoad, recoveryUnderLoadP50Ms, recoveryUnderLoadP99Ms } = figures;
  return [
    `${figures.seconds} s`,
    `${figures.triggers} triggers`,
    `${figures.conversations} conversations`,
    `${figures.turns} turns (${figures.failedTurns} failed, ${figures.cancelledTurns} cancelled)`,
    `${figures.kills} kills`,
    `${figures.stops} stops`,
    `${figures.queueLosses} queue losses`,
    `${figures.connectionResets} connection resets`,
    `${figures.databaseFailovers} failovers of the database`,
    `${figures.duplicatesPosted} duplicates posted`,
    `${figures.toolCalls} tool calls`,
    `${figures.lostCallsFlagged} lost calls flagged`,
    `${figures.unanswered} unanswered`,
    `${figures.violations} violations`,
    `answer p50 ${answerP50Ms} p99 ${answerP99Ms} ms`,
    `recovery p50 ${recoveryP50Ms} p99 ${recoveryP99Ms} ms of ${recovered} (limit ${recoveryLimitMs} ms)`,
    `under load and other faults p50 ${recoveryUnderLoadP50Ms} p99 ${recoveryUnderLoadP99Ms} ms of ${recoveredUnderLoad}`,
    `seed ${figures.seed}`,
  ].join(', ');
}
