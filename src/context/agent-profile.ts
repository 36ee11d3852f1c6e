import type { AgentId, ToolSpec } from '../events/index.ts';
import type { AgentFragments } from './fragment.ts';

/** What the context module needs to know of an agent. */
export interface AgentProfile {
  id: AgentId;
  name: string;
  role: 'manager' | 'worker' | 'peer';
  description: string;
  instructions: string;
  provider: string;
  model: string;
  contextWindow: number;
  maxOutputTokens: number;
  join: 'full' | 'summary' | 'fresh';
  tools: readonly ToolSpec[];
  /** What the application adds to its prompts. */
  fragments?: AgentFragments;
}
