/**
 * Ids that the runtime mints for what its agents do. They are predictable, so that a retry writes the same event; so
 * nobody else may take one, or an agent could never publish under it.
 */
const TURN_PART =
  /^.+:[^:]+:[1-9]\d*:(?:started|reply|end|step:\d+|result:\d+\.\d+|handoff:\d+\.\d+|error:[\d.]+)$/;
const AGENT_FACT = /^(?:joined|baseline|failed):/;

export function isRuntimeId(id: string): boolean {
  return TURN_PART.test(id) || AGENT_FACT.test(id);
}

/** The turn that a runtime id belongs to, as text; null for any other id. */
export function turnOfRuntimeId(id: string): string | null {
  return TURN_PART.test(id) ? (/^(.+:[^:]+:[1-9]\d*):(?:[a-z]+)/.exec(id)?.[1] ?? null) : null;
}
