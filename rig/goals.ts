import { LEASE_MS } from './agents.ts';
import { percentile } from './recovery.ts';

/** Minimum work of a meaningful run of one minute; longer runs need proportionally more. */
const PER_MINUTE = { kills: 100, stops: 10, triggers: 3_000, queueLosses: 2 } as const;
const CONVERSATIONS = 300;
const CONVERSATIONS_PER_SECOND = 5;
const MOST_CONVERSATIONS = 10_000;
/** Sample size of the recovery figures, whatever the length of the run. */
const RECOVERIES = 25;
/** A lease and a sweep, which comes within a lease, and a quarter for slow machines. */
export const RECOVERY_LIMIT_MS = 2.25 * LEASE_MS;

export interface Progress {
  kills: number;
  stops: number;
  triggers: number;
  queueLosses: number;
  conversations: number;
}

/** Short runs begin fewer conversations, so that each of them still gets a history. */
export function conversationsFor(seconds: number): number {
  return Math.min(MOST_CONVERSATIONS, Math.max(10, Math.round(seconds * CONVERSATIONS_PER_SECOND)));
}

/** The missed goals, in words. */
export function missingGoals(seconds: number, done: Progress): string[] {
  const share = seconds / 60;
  const goals: Progress = {
    conversations: seconds >= 60 ? CONVERSATIONS : conversationsFor(seconds),
    kills: Math.floor(PER_MINUTE.kills * share),
    stops: Math.floor(PER_MINUTE.stops * share),
    triggers: Math.floor(PER_MINUTE.triggers * share),
    queueLosses: Math.floor(PER_MINUTE.queueLosses * share),
  };
  return Object.entries(goals).flatMap(([name, goal]) => {
    const reached = done[name as keyof Progress];
    return reached < goal ? [`${name} ${reached} of ${goal}`] : [];
  });
}

/** Recoveries in the recovery phase. */
export function recoveriesFor(seconds: number): number {
  return Math.max(1, Math.floor(RECOVERIES * Math.min(1, seconds / 60)));
}

export function missedRecovery(seconds: number, times: readonly number[]): string[] {
  const goal = recoveriesFor(seconds);
  const p99 = percentile(times, 0.99);
  return [
    ...(times.length < goal ? [`recoveries ${times.length} of ${goal}`] : []),
    ...(p99 > RECOVERY_LIMIT_MS ? [`recovery p99 ${p99} ms of at most ${RECOVERY_LIMIT_MS} ms`] : []),
  ];
}
