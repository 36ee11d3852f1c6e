import { type ConversationId, type EventId, parseTurnId, type TurnId } from './ids.ts';

/**
 * Ids that the runtime mints for what it writes. They are predictable, so that a retry writes the same event; so nobody
 * else may take one, or an agent could not publish under it.
 *
 * One mark tells them from all other ids: the ':' between their parts. `runtimeId` is the only way to make one, so none can
 * be without it; and nobody brings an event under an id that has one, through whichever door (`Troupe.send`).
 */
const MARK = ':';

type Part = string | number;

export function runtimeId(...parts: readonly [Part, Part, ...Part[]]): EventId {
  return parts.join(MARK) as EventId;
}

export function isRuntimeId(id: string): boolean {
  return id.includes(MARK);
}

/**
 * Where an event under a runtime id is not the runtime's (a client of an earlier version took it, a file brought it), the
 * runtime writes under the next spare of it. No id of another event ends like this.
 */
export function spareId(id: EventId, number: number): EventId {
  return runtimeId(id, `@${number}`);
}

function withoutSpare(id: string): string {
  return id.replace(/:@\d+$/, '');
}

/** What a run of a workflow brings about, of one attempt at it: each has one id, so it is there once. */
const RUN_FACT = /^run:([A-Za-z0-9_@-]+):(mode|phase|directive|step|failed|end|back):(\d+)\.(\d+)$/;

export type RunPart = 'mode' | 'phase' | 'directive' | 'step' | 'failed' | 'end' | 'back';

/** Which part of a run, at which of its steps (from 1), at which attempt. */
export interface RunFact {
  run: string;
  part: RunPart;
  number: number;
  attempt: number;
}

export function runFactId({ run, part, number, attempt }: RunFact): EventId {
  return runtimeId('run', run, part, `${number}.${attempt}`);
}

export function runFactOf(id: string): RunFact | null {
  const [, run, part, number, attempt] = RUN_FACT.exec(withoutSpare(id)) ?? [];
  if (run === undefined) return null;
  return { run, part: part as RunPart, number: Number(number), attempt: Number(attempt) };
}

/** The turn of a conversation that a runtime id is of; null for any other id. */
export function turnOfRuntimeId(id: string, conversation: ConversationId): TurnId | null {
  if (!id.startsWith(`${conversation}${MARK}`)) return null;
  const [agent, number, part] = id.slice(conversation.length + 1).split(MARK, 3);
  const turn = `${conversation}${MARK}${agent}${MARK}${number}`;
  return part !== undefined && parseTurnId(turn) ? (turn as TurnId) : null;
}
