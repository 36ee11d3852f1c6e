import type { AgentId, FormerIds } from '../../events/index.ts';
import type { AgentDefinition } from './agent-input.ts';
import type { Problem } from './problem.ts';

/** Absent: no agent has been renamed. */
export function formerIds(agents: readonly Pick<AgentDefinition, 'id' | 'aliases'>[]): FormerIds | undefined {
  const former = new Map<AgentId, AgentId>();
  for (const { id, aliases = [] } of agents) for (const alias of aliases) former.set(alias, id);
  return former.size === 0 ? undefined : former;
}

interface Sketch {
  id?: string | undefined;
  aliases?: readonly (string | undefined)[] | undefined;
}

/** Reports former ids that are the present id of an agent, are claimed by two agents, or belong to templates. */
export function* aliasProblems(agents: readonly Sketch[], templates: readonly Sketch[]): Generator<Problem> {
  const ids = new Set([...agents, ...templates].map(({ id }) => id));
  const claimed = new Map<string, string>();
  for (const [index, { id = '', aliases = [] }] of agents.entries()) {
    for (const [at, alias] of aliases.entries()) {
      if (alias === undefined) continue;
      const path = ['agents', index, 'aliases', at];
      const other = claimed.get(alias);
      if (ids.has(alias))
        yield { path, message: `"${alias}" is the id of an agent: no other has it as a former id` };
      else if (other !== undefined) yield { path, message: `"${alias}" is a former id of @${other} already` };
      claimed.set(alias, id);
    }
  }
  for (const [index, { aliases }] of templates.entries())
    if (aliases)
      yield { path: ['templates', index, 'aliases'], message: 'only agents have former ids, not templates' };
}
