import type { FetchSettings } from '../../net/settings.ts';
import type { Tool } from '../tool.ts';
import { ask } from './ask.ts';
import { cancelTask } from './cancel-task.ts';
import { completeStep } from './complete-step.ts';
import { delegate } from './delegate.ts';
import { fetchTool } from './fetch.ts';
import { followUp } from './follow-up.ts';
import { type HandoffPolicy, handoffTool } from './handoff.ts';
import { noResponse } from './no-response.ts';
import { readArtifact } from './read-artifact.ts';
import { remind } from './remind.ts';
import { todo } from './todo.ts';

/** The tools that come with Troupe. An agent has those that its definition names. */
export function builtinTools(handoffs: HandoffPolicy, fetch?: FetchSettings): Tool[] {
  return [
    handoffTool(handoffs),
    readArtifact,
    delegate,
    ask,
    followUp,
    cancelTask,
    remind,
    todo,
    noResponse,
    completeStep,
    fetchTool(fetch),
  ];
}

export const BUILTIN_TOOLS: readonly string[] = builtinTools('agent').map(({ name }) => name);
