import type { FetchSettings } from '../../base/net/settings.ts';
import type { Tool } from '../tool.ts';
import { askTool, cancelTaskTool, delegateTool, followUpTool, remindTool } from './tasks.ts';
import { completeStepTool, type HandoffPolicy, handoffTool, noResponseTool, todoTool } from './turn.ts';
import { fetchTool } from './fetch.ts';
import { readArtifactTool } from './read-artifact.ts';

/** The built-in tools. An agent has those that its definition names. */
export function builtinTools(handoffs: HandoffPolicy, fetch?: FetchSettings): Tool[] {
  return [
    handoffTool(handoffs),
    readArtifactTool,
    delegateTool,
    askTool,
    followUpTool,
    cancelTaskTool,
    remindTool,
    todoTool,
    noResponseTool,
    completeStepTool,
    fetchTool(fetch),
  ];
}

export const BUILTIN_TOOLS: readonly string[] = builtinTools('agent').map(({ name }) => name);
