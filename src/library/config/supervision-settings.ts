import * as z from 'zod';
import type { InputOf } from '../../base/input-of.ts';
import type { Supervision } from '../../actors/actor/agent-runtime.ts';

export const SupervisionSettings = z.strictObject({
  /** Most consecutive corrections without a change; then the turn ends. 0: no corrections. Default 3. */
  idle: z.int().nonnegative().optional(),
  /** Whether an empty answer is corrected. Default: if the agent has the tool `no_response`, with which it can be silent on purpose. */
  silent: z.boolean().optional(),
});
/** Corrections of an agent that ends a turn with work left. */
export interface SupervisionSettings extends InputOf<typeof SupervisionSettings> {}

/** An agent's own settings override those of the troupe, field by field. */
export function supervisionOf(
  all: SupervisionSettings | undefined,
  own: SupervisionSettings | undefined,
  tools: readonly string[],
): Supervision {
  const { idle = 3, silent = tools.includes('no_response') } = { ...all, ...defined(own) };
  return { idle, silent };
}

/** Drops fields with the value undefined: they count as left out. */
function defined(settings: SupervisionSettings = {}): SupervisionSettings {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
}
