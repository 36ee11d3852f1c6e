import type { AgUiEvent } from './protocol.ts';

export interface Place {
  conversation: string;
  agent: string;
  turn: string;
}

/** Who a part of a run belongs to: the task of a sub-agent, or nobody. */
export interface Owner {
  subagentRunId?: string;
}

export function ownerOf({ subagentRunId }: Owner): Owner {
  return subagentRunId === undefined ? {} : { subagentRunId };
}

/** The turns of agents as steps of a run. Owns which of them are begun and not ended. */
export class Steps {
  /** By owner and agent. */
  readonly #running = new Map<string, { turn: string; stepName: string; owner: Owner }>();

  enter({ agent: stepName, turn }: Place, owner: Owner): AgUiEvent[] {
    const key = keyOf(stepName, owner);
    const running = this.#running.get(key);
    if (running?.turn === turn) return [];
    this.#running.set(key, { turn, stepName, owner });
    const before: AgUiEvent[] = running ? [{ type: 'STEP_FINISHED', stepName, ...owner }] : [];
    return [...before, { type: 'STEP_STARTED', stepName, ...owner }];
  }

  leave({ agent: stepName, turn }: Pick<Place, 'agent' | 'turn'>, owner: Owner): AgUiEvent[] {
    const key = keyOf(stepName, owner);
    if (this.#running.get(key)?.turn !== turn) return [];
    this.#running.delete(key);
    return [{ type: 'STEP_FINISHED', stepName, ...owner }];
  }

  endAll(): AgUiEvent[] {
    const left = [...this.#running.values()];
    this.#running.clear();
    return left.map(({ stepName, owner }) => ({ type: 'STEP_FINISHED', stepName, ...owner }));
  }
}

function keyOf(agent: string, { subagentRunId = '' }: Owner): string {
  return `${subagentRunId} ${agent}`;
}
