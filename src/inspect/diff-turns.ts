import { TroupeError } from '../errors.ts';
import { parseTurnId, type TenantId } from '../events/index.ts';
import { resolveAgent } from '../actors/conversations/address-message.ts';
import { diffPrompts, type PromptDiff } from './diff-prompts.ts';
import type { EngineDeps } from '../actors/engine/engine-deps.ts';
import { nextPrompt, sentPrompt } from './prompts.ts';

/** Stands for the prompt that the agent of the other turn would be sent now. */
export const NEXT = 'next';

/** Which model calls are meant; the last of each turn by default. */
export interface DiffSteps {
  stepA?: number | undefined;
  stepB?: number | undefined;
}

/**
 * What changed from the prompt of turn `a` to that of turn `b`, or to the next one. Throws `turn_unknown`, and
 * `event_invalid` for turns of two agents: their prompts have no history in common.
 */
export async function diffTurns(
  deps: EngineDeps,
  tenant: TenantId,
  [a, b]: readonly [string, string],
  { stepA, stepB }: DiffSteps,
): Promise<PromptDiff> {
  refuseOthers(a, b);
  if (b === NEXT && stepB !== undefined) throw invalid('stepB', 'the next prompt has no steps yet');
  const before = await sentPrompt(deps, tenant, a, stepA);
  if (b !== NEXT) return diffPrompts(before, await sentPrompt(deps, tenant, b, stepB));
  const { conversation, agent } = before;
  const runtime = deps.agents.get(resolveAgent(deps.agents, agent));
  if (!runtime) throw new TroupeError('agent_unknown', `there is no agent "${agent}"`);
  return diffPrompts(before, await nextPrompt(deps, { tenant, conversation, agent }, runtime));
}

function refuseOthers(a: string, b: string): void {
  const [before, after] = [parseTurnId(a), parseTurnId(b)];
  if (!before || !after) return;
  const { conversation, agent } = after;
  if (before.agent === agent && before.conversation === conversation) return;
  throw invalid(
    'a',
    `${a} and ${b} are not of the same agent in the same conversation: compare ${b} with another turn of @${agent}, as ${conversation}:${agent}:1`,
  );
}

function invalid(path: string, message: string): TroupeError {
  return new TroupeError('event_invalid', message, { path });
}
