/** What a run of one minute must have done to say anything; longer runs in proportion, where that makes sense. */
const PER_MINUTE = { kills: 100, stops: 10, triggers: 3_000, queueLosses: 2 } as const;
const CONVERSATIONS = 300;
const CONVERSATIONS_PER_SECOND = 5;
const MOST_CONVERSATIONS = 10_000;

export interface Progress {
  kills: number;
  stops: number;
  triggers: number;
  queueLosses: number;
  conversations: number;
}

/** Short runs begin fewer conversations, so that each of them still has a history. */
export function conversationsFor(seconds: number): number {
  return Math.min(MOST_CONVERSATIONS, Math.max(10, Math.round(seconds * CONVERSATIONS_PER_SECOND)));
}

/** What is still missing, in words. */
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
