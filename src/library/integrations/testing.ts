import type { AgentId, Event } from '../../events/index.ts';
import { isUnheard } from '../../machines/membership.ts';
import { foldTask, isDue, isResolved, newTaskFold, openTasks } from '../../machines/task-fold.ts';

/**
 * What the suites and fakes of `@troupe/testing`, and tests of whole conversations, need besides the ports: the rules
 * of a log, who owes an answer to whom, and a definition without its MCP servers.
 */
export {
  ACTOR_VERSION,
  type ActorRecord,
  isRuntimeId,
  isTaskEnd,
  newActorRecord,
  parseExact,
  templateOf,
  type TurnId,
  turnId,
} from '../../events/index.ts';
export { visibleText } from '../../context/index.ts';
export { withoutStaleNote } from '../../actors/attempt/repeated-calls.ts';
export { summariseEvent } from '../projection/summarise-event.ts';
export { replaceGrants } from '../../tools/mcp/open-mcp-tools.ts';
export { EXTRA_TOOLS, grantProblems, isExtra, toolName } from '../../tools/mcp/settings.ts';
export type { McpTool } from '../../tools/mcp/tools.ts';

/** The tasks of one conversation, as the engine sees them after the events that were added. */
export interface LogTasks {
  /** Takes the next event of the log. */
  add(event: Event): void;
  /** Ended tasks, by the seq of their end. */
  readonly ended: ReadonlyMap<number, { id: string; owner: AgentId }>;
  /** Whether the task that ended at `seq` may wake its owner, because its group is due. */
  isDue(seq: number): boolean;
  /** Ids of the open tasks that the agent waits for. */
  awaitedBy(agent: AgentId): string[];
  /** Whether the agent is away, so that nothing wakes it. */
  isAway(agent: AgentId): boolean;
  /** Whether an event does not wake the addressed agent, because it was away. */
  isUnheard(agent: AgentId, event: Event): boolean;
}

/** The tasks of a conversation without events. */
export function createLogTasks(): LogTasks {
  const fold = newTaskFold();
  return {
    add: (event) => foldTask(fold, event),
    ended: fold.ended,
    isDue: (seq) => isDue(fold, seq),
    awaitedBy: (agent) =>
      openTasks(fold, agent).flatMap(({ id, group }) => (isResolved(fold, group) ? [] : [id])),
    isAway: (agent) => fold.away.has(agent),
    isUnheard: (agent, event) => isUnheard(fold, agent, event),
  };
}
