import type { AgentInput } from '../../src/library/config/agent-input.ts';
import type { ScriptRuleInput as Rule } from '../../src/providers/script.ts';

export function scripted(id: string, tools: string[], rules: Rule[]): AgentInput {
  return { id, name: id, provider: 'scripted', model: 'test', tools, script: { rules } };
}

export function calls(reply: string, name: string, args: object): Pick<Rule, 'reply' | 'calls'> {
  return { reply, calls: [{ name, args }] };
}
