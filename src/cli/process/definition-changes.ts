import { inspect } from 'node:util';
import type { AgentInput } from '../../config/agent-definition.ts';
import type { TroupeInput } from '../../config/agents-file.ts';

/** What a new definition does to the agents of the one before, by id. */
export interface DefinitionChanges {
  added: string[];
  removed: string[];
  changed: string[];
}

export function changesBetween(before: TroupeInput, after: TroupeInput): DefinitionChanges {
  const old = textsOf(before);
  const now = textsOf(after);
  return {
    added: [...now.keys()].filter((id) => !old.has(id)),
    removed: [...old.keys()].filter((id) => !now.has(id)),
    changed: [...now.keys()].filter((id) => old.has(id) && old.get(id) !== now.get(id)),
  };
}

export function changesText({ added, removed, changed }: DefinitionChanges): string {
  const parts = Object.entries({ new: added, removed, changed })
    .filter(([, ids]) => ids.length > 0)
    .map(([what, ids]) => `${what}: ${ids.map((id) => `@${id}`).join(' ')}`);
  return parts.join('; ') || 'the agents are the same';
}

function textsOf({ agents }: TroupeInput): Map<string, string> {
  return new Map(agents.map((agent) => [agent.id, textOf(agent)]));
}

/** Not JSON, because models and schemas of other libraries may have cycles. */
function textOf({ instructions, ...agent }: AgentInput): string {
  const text = inspect(agent, { depth: 8, maxArrayLength: null, maxStringLength: null });
  return `${String(instructions)}\n${text}`;
}
