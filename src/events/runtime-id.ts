import type { EventId } from './ids.ts';

/**
 * Ids that the runtime mints for what its agents do. They are predictable, so that a retry writes the same event; so
 * nobody else may take one, or an agent could never publish under it.
 */
const TURN_PART =
  /^.+:[^:]+:[1-9]\d*:(?:started|reply|end|retry|step:\d+|result:\d+\.\d+|(?:handoff|opened|asked|guard|todos):\d+\.\d+|(?:steered|note|resume):\d+|completed|error:[\d.]+)$/;
const AGENT_FACT =
  /^(?:joined|baseline|failed|refused|remind|schedule|archived|dispatch|phase|fork|forked|calledoff):/;
/** The end of a task is one id, which whoever ends it first takes. */
const TASK_FACT = /^[adq]-[0-9a-f]{12}:(?:opened|end|abort)$/;
/** What the run of a workflow brings about, of one attempt at it: each has one id, so it is there once. */
const RUN_FACT = /^run:([A-Za-z0-9_@-]+):(mode|phase|directive|step|failed|end|back):(\d+)\.(\d+)$/;

export function isRuntimeId(id: string): boolean {
  return TURN_PART.test(id) || AGENT_FACT.test(id) || TASK_FACT.test(id) || RUN_FACT.test(id);
}

export type RunPart = 'mode' | 'phase' | 'directive' | 'step' | 'failed' | 'end' | 'back';

/** Which part of a run, at which of its steps (from 1), at which attempt. */
export interface RunFact {
  run: string;
  part: RunPart;
  number: number;
  attempt: number;
}

export function runFactId({ run, part, number, attempt }: RunFact): EventId {
  return `run:${run}:${part}:${number}.${attempt}` as EventId;
}

export function runFactOf(id: string): RunFact | null {
  const [, run, part, number, attempt] = RUN_FACT.exec(id) ?? [];
  if (run === undefined) return null;
  return { run, part: part as RunPart, number: Number(number), attempt: Number(attempt) };
}

/** The turn that a runtime id belongs to, as text; null for any other id. */
export function turnOfRuntimeId(id: string): string | null {
  return TURN_PART.test(id) ? (/^(.+:[^:]+:[1-9]\d*):(?:[a-z]+)/.exec(id)?.[1] ?? null) : null;
}
