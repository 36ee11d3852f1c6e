import type { FetchSettings } from '../../base/net/settings.ts';
import type { Tool } from '../tool.ts';
import {
  askTool,
  cancelTaskTool,
  delegateTool,
  followUpTool,
  remindTool,
  completeStepTool,
  type HandoffPolicy,
  handoffTool,
  noResponseTool,
  todoTool,
  readArtifactTool,
} from './conversation.ts';
import { fetchTool } from './fetch.ts';

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

export type BuiltinTool =
  | 'handoff'
  | 'read_artifact'
  | 'delegate'
  | 'ask'
  | 'follow_up'
  | 'cancel_task'
  | 'remind'
  | 'todo'
  | 'no_response'
  | 'complete_step'
  | 'fetch';
