import * as z from 'zod';
import type { Supervision } from '../actors/engine/agent-runtime.ts';

/** How an agent is held to what it has set out to do, before its turn ends. */
export const SupervisionSettings = z.strictObject({
  /** Corrections in which nothing changed, after which the turn ends all the same. Default 3; 0: nothing is corrected. */
  idle: z.int().nonnegative().optional(),
  /** Corrections in one turn, whatever changed. Default 30. */
  most: z.int().nonnegative().optional(),
  /** Whether an answer without words is sent back. Default: where the agent has `no_response` to say that it means it. */
  silent: z.boolean().optional(),
});
export type SupervisionSettings = z.infer<typeof SupervisionSettings>;

/** What an agent's own settings leave out is taken from those of the troupe. */
export function supervisionOf(
  all: SupervisionSettings | undefined,
  own: SupervisionSettings | undefined,
  tools: readonly string[],
): Supervision {
  const { idle = 3, most = 30, silent = tools.includes('no_response') } = { ...all, ...defined(own) };
  return { idle, most, silent };
}

/** A field that is written out as undefined is one that was left out. */
function defined(settings: SupervisionSettings = {}): SupervisionSettings {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
}
