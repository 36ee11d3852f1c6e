import type { AgentView } from '../../../src/library/projection/model.ts';
import { actors, states } from './live.ts';
import { isPast } from './past.ts';

/**
 * State path of the agent's machine, and the tools that it calls. The live state takes precedence, then the actor's status,
 * then the log. Each of the first two counts only while the log has not moved past it.
 */
export function agentPath({ id, state, turn, since }: AgentView): string {
  if (isPast.value) return shown(state);
  const newest = states.value.get(id);
  if (newest && (newest.at >= since.at || isWithin(newest.state, state, newest.turn === turn)))
    return [shown(newest.state), ...newest.doing].join(' · ');
  const actor = actors.value.find(({ agent }) => agent === id);
  if (actor && isWithin(actor.state, state, actor.turn === turn)) return shown(actor.state);
  return shown(state);
}

/** The log shows only that a turn runs; the machine knows more. */
function isWithin(path: string, logged: string, isSameTurn: boolean): boolean {
  return isSameTurn && path.startsWith(`${logged}.`);
}

function shown(path: string): string {
  return path.replaceAll('.', ' › ');
}
