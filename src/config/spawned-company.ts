import type { AgentRuntime } from '../actors/engine/agent-runtime.ts';
import type { AgentId } from '../events/index.ts';

/** `coder-1`, of the template `coder`. Not one more, so that what is made of a name is bounded. */
const SPAWNED = /^(.+)-[1-9]\d{0,2}$/;

/**
 * The agents of a definition, and those of its templates. The latter are made when their id is met: who they are follows
 * from the id alone, so every process finds the same, and none has to be told. Walking finds the defined ones only.
 */
export class SpawnedCompany extends Map<AgentId, AgentRuntime> {
  readonly #templates: ReadonlyMap<AgentId, (id: AgentId) => AgentRuntime>;
  readonly #spawned = new Map<AgentId, AgentRuntime>();

  constructor(
    members: Iterable<readonly [AgentId, AgentRuntime]>,
    templates: ReadonlyMap<AgentId, (id: AgentId) => AgentRuntime>,
  ) {
    super(members);
    this.#templates = templates;
  }

  get templates(): readonly AgentId[] {
    return [...this.#templates.keys()];
  }

  override get(id: AgentId): AgentRuntime | undefined {
    return super.get(id) ?? this.#spawned.get(id) ?? this.#spawn(id);
  }

  override has(id: AgentId): boolean {
    return this.get(id) !== undefined;
  }

  #spawn(id: AgentId): AgentRuntime | undefined {
    const template = templateOf(id);
    const runtime = template === null ? undefined : this.#templates.get(template)?.(id);
    if (runtime) this.#spawned.set(id, runtime);
    return runtime;
  }
}

export function templateOf(id: string): AgentId | null {
  return (SPAWNED.exec(id)?.[1] ?? null) as AgentId | null;
}

/** Names of templates that would be taken for agents, or the other way round. */
export function* templateProblems(
  templates: readonly (string | undefined)[],
  agents: readonly (string | undefined)[],
): Generator<{ path: PropertyKey[]; message: string }> {
  for (const [index, id] of templates.entries()) {
    if (id === undefined) continue;
    const path = ['templates', index, 'id'];
    if (agents.includes(id)) yield { path, message: `"${id}" is an agent` };
    if (templates.indexOf(id) !== index) yield { path, message: `"${id}" is used twice` };
    const taken = agents.find((agent) => agent !== undefined && templateOf(agent) === id);
    if (taken !== undefined)
      yield { path, message: `its agents are called ${id}-1, ${id}-2, …, and "${taken}" is one` };
  }
}
