import type { Event } from '../troupe.ts';
import type { AgUiEvent } from './protocol.ts';

/** Characters of a task that its beginning tells. */
const DESCRIBED = 2_000;

/** The delegated tasks, as sub-agents. Owns which of them run. */
export class SubAgents {
  /** The last task of each thread. */
  readonly #tasks = new Map<string, string>();
  readonly #running = new Set<string>();

  taskOf(thread: string): string | undefined {
    return this.#tasks.get(thread);
  }

  note(event: Event, owner: { subagentRunId?: string }): AgUiEvent[] {
    if (event.kind === 'delegation.opened') {
      const { delegation, thread, home, assignee, task } = event.body;
      if (event.conversation !== home || this.#running.has(delegation)) return [];
      this.#tasks.set(thread, delegation);
      this.#running.add(delegation);
      const parent = owner.subagentRunId;
      return [
        {
          type: 'SUBAGENT_STARTED',
          subagentRunId: delegation,
          name: assignee,
          description: task.slice(0, DESCRIBED).toWellFormed(),
          ...(parent !== undefined && { parentSubagentRunId: parent }),
        },
      ];
    }
    if (event.kind !== 'delegation.ended') return [];
    const { delegation: subagentRunId, outcome, result, data } = event.body;
    if (this.#tasks.get(event.conversation) === subagentRunId || !this.#running.delete(subagentRunId))
      return [];
    return outcome === 'done'
      ? [{ type: 'SUBAGENT_FINISHED', subagentRunId, result: data ?? result, outcome: { type: 'success' } }]
      : [{ type: 'SUBAGENT_ERROR', subagentRunId, message: result, code: outcome }];
  }

  /** The innermost first. */
  suspend(interrupts: readonly { id: string; subagentRunId?: string }[]): AgUiEvent[] {
    return this.end().map((subagentRunId): AgUiEvent => {
      const own = interrupts.filter((each) => each.subagentRunId === subagentRunId);
      const interruptIds = own.map(({ id }) => id);
      return { type: 'SUBAGENT_FINISHED', subagentRunId, outcome: { type: 'suspended', interruptIds } };
    });
  }

  /** Ids of those that ran until now, the innermost first. */
  end(): string[] {
    const ended = [...this.#running].toReversed();
    this.#running.clear();
    return ended;
  }
}
