import type { AgentView } from '../../../src/projection/model.ts';
import { actors, states } from './live.ts';
import { isPast } from './past.ts';

/**
 * Where an agent's machine is, with the tools that it calls: told live, else as the server said of the actor, else as
 * the log tells. Of the first two only what the log has not brought beyond since.
 */
export function agentPath({ id, state, turn, since }: AgentView): string {
  if (isPast.value) return shown(state);
  const told = states.value.get(id);
  if (told && (told.at >= since.at || isWithin(told.state, state, told.turn === turn)))
    return [shown(told.state), ...told.doing].join(' · ');
  const actor = actors.value.find(({ agent }) => agent === id);
  if (actor && isWithin(actor.state, state, actor.turn === turn)) return shown(actor.state);
  return shown(state);
}

/** The log tells of a turn only that it runs: a machine says more. */
function isWithin(path: string, logged: string, isSameTurn: boolean): boolean {
  return isSameTurn && path.startsWith(`${logged}.`);
}

function shown(path: string): string {
  return path.replaceAll('.', ' › ');
}
