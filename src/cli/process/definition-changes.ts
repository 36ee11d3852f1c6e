import { inspect } from 'node:util';
import type { AgentInput } from '../../library/config/agent-definition.ts';
import type { TroupeInput } from '../../library/config/agents-file.ts';

/** What a new definition does to the agents of the one before, by id. */
export interface DefinitionChanges {
  added: string[];
  removed: string[];
  changed: string[];
  /** Names of the other fields of the definition that differ, such as `tools` and `limits`. */
  settings: string[];
}

export function changesBetween(before: TroupeInput, after: TroupeInput): DefinitionChanges {
  const old = textsOf(before);
  const now = textsOf(after);
  return {
    added: [...now.keys()].filter((id) => !old.has(id)),
    removed: [...old.keys()].filter((id) => !now.has(id)),
    changed: [...now.keys()].filter((id) => old.has(id) && old.get(id) !== now.get(id)),
    settings: settingsBetween(before, after),
  };
}

function settingsBetween(before: TroupeInput, after: TroupeInput): string[] {
  const [old, now] = [before, after] as unknown as [Record<string, unknown>, Record<string, unknown>];
  const names = new Set([...Object.keys(old), ...Object.keys(now)]);
  names.delete('agents');
  return [...names].filter((name) => shownAs(old[name]) !== shownAs(now[name])).toSorted();
}

export function changesText({ added, removed, changed, settings }: DefinitionChanges): string {
  const parts = Object.entries({ new: added, removed, changed })
    .filter(([, ids]) => ids.length > 0)
    .map(([what, ids]) => `${what}: ${ids.map((id) => `@${id}`).join(' ')}`);
  if (settings.length > 0) parts.push(`settings: ${settings.join(' ')}`);
  return parts.join('; ') || 'no agent and no setting has changed';
}

function textsOf({ agents }: TroupeInput): Map<string, string> {
  return new Map(agents.map((agent) => [agent.id, textOf(agent)]));
}

function textOf({ instructions, ...agent }: AgentInput): string {
  return `${String(instructions)}\n${shownAs(agent)}`;
}

/** Not JSON, because models and schemas of other libraries may have cycles. */
function shownAs(value: unknown): string {
  return `${inspect(value, { depth: 8, maxArrayLength: null, maxStringLength: null })}\n${codeIn(value)}`;
}

/** The code of functions, of which `inspect` shows the names only: those of a value, and of the items of a list. */
function codeIn(value: unknown): string {
  const parts = Array.isArray(value)
    ? value.flatMap((item) => Object.values(Object(item) as object))
    : [value];
  return parts.filter((part) => typeof part === 'function').join('\n');
}
