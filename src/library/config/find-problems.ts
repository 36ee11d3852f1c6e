import * as z from 'zod';
import { unknownFields } from './agent-input.ts';
import { budgetProblems, BudgetSketch } from './budget-settings.ts';
import { coordinationProblems, workflowProblems } from './coordination-settings.ts';
import { aliasProblems } from './former-ids.ts';
import { fragmentProblems } from './fragments.ts';
import { type Problem, unknownAgent, usedTwice } from './problem.ts';
import { templateOf, unknownName } from '../../events/index.ts';
import { grantProblems, isExtra, parseGrant } from '../../tools/mcp/settings.ts';
import { LOAD_SKILL } from '../../tools/skill.ts';
import { BUILTIN_TOOLS } from '../../tools/builtin/index.ts';

const Text = z.string().optional().catch(undefined);
const AgentSketches = z
  .array(
    z
      .object({
        id: Text,
        aliases: z.array(Text).optional().catch(undefined),
        pubkey: Text,
        tools: z.array(Text).catch([]),
        needsApproval: z.array(Text).optional().catch(undefined),
        provider: Text,
        adapter: Text,
        model: Text,
        price: z.unknown().optional(),
      })
      .catch({ tools: [] }),
  )
  .catch([]);
/** Reads what it can of an invalid definition, so that one problem does not hide the others. */
const Sketch = z
  .object({
    agents: AgentSketches,
    templates: AgentSketches,
    providers: z.record(z.string(), z.unknown()).catch({}),
    routing: z.unknown().optional(),
    schedules: z.unknown().optional(),
    workflows: z.unknown().optional(),
    tools: z.array(z.object({ name: Text }).catch({})).catch([]),
    mcpServers: z
      .record(z.string(), z.object({ tools: z.array(Text).optional().catch(undefined) }).catch({}))
      .catch({}),
    defaults: z.object({ respondWhenUnaddressed: Text }).catch({}),
    budgets: BudgetSketch,
    context: z.object({ summariser: Text }).catch({}),
    fragments: z
      .array(z.object({ name: Text, agents: z.array(Text).catch([]) }).catch({ agents: [] }))
      .catch([]),
  })
  .catch({
    agents: [],
    templates: [],
    providers: {},
    tools: [],
    mcpServers: {},
    defaults: {},
    fragments: [],
    context: {},
    budgets: { agents: {} },
  });

/** Reports problems between parts of a definition. The schema reports missing and mistyped fields. */
export function* findProblems(definition: unknown): Generator<Problem> {
  const sketch = Sketch.parse(definition);
  const { agents: given, templates: givenTemplates } = (definition ?? {}) as Record<string, unknown>;
  yield* unknownFields(given, 'agents');
  yield* unknownFields(givenTemplates, 'templates');
  const { agents, templates, workflows, defaults } = sketch;
  const { summariser } = sketch.context;
  yield* identityProblems(agents);
  yield* adapterProblems(sketch);
  yield* toolProblems(sketch);
  yield* approvalProblems(sketch);
  yield* aliasProblems(agents, templates);
  const ids = agents.flatMap(({ id, aliases = [] }) => [id, ...aliases]);
  const templateIds = templates.map(({ id }) => id);
  yield* coordinationProblems(sketch, ids, templateIds);
  yield* workflowProblems(workflows, ids, (agent) => {
    const found = agents.find(({ id, aliases = [] }) => id === agent || aliases.includes(agent));
    return (found ?? templates.find(({ id }) => id === templateOf(agent)))?.tools ?? null;
  });
  yield* fragmentProblems(sketch.fragments, ids);
  yield* budgetProblems(sketch.budgets, agents, summariser);
  if (summariser !== undefined && !ids.includes(summariser)) {
    yield unknownAgent(summariser, ids, ['context', 'summariser']);
  }
  const fallback = defaults.respondWhenUnaddressed;
  if (fallback !== undefined && !ids.includes(fallback)) {
    yield unknownAgent(fallback, ids, ['defaults', 'respondWhenUnaddressed']);
  }
}

type AgentSketch = z.infer<typeof AgentSketches>[number];

function* identityProblems(agents: readonly AgentSketch[]): Generator<Problem> {
  const ids = agents.map(({ id }) => id);
  const keys = agents.map(({ pubkey }) => pubkey);
  for (const [index, pubkey] of keys.entries()) {
    yield* usedTwice(ids, index, ['agents', index, 'id']);
    if (pubkey && keys.indexOf(pubkey) !== index) {
      yield { path: ['agents', index, 'pubkey'], message: 'another agent has this pubkey' };
    }
  }
}

function* adapterProblems({
  agents,
  templates,
  providers,
}: Pick<z.infer<typeof Sketch>, 'agents' | 'templates' | 'providers'>): Generator<Problem> {
  const known = Object.keys(providers);
  for (const [list, entries] of Object.entries({ agents, templates })) {
    for (const [index, { provider, adapter }] of entries.entries()) {
      if (provider !== 'custom' || adapter === undefined || known.includes(adapter)) continue;
      const message = unknownName(`there is no "${adapter}" in "providers"`, adapter, known);
      yield { path: [list, index, 'adapter'], message };
    }
  }
}

function* toolProblems({
  agents,
  templates,
  tools,
  mcpServers,
}: Pick<z.infer<typeof Sketch>, 'agents' | 'templates' | 'tools' | 'mcpServers'>): Generator<Problem> {
  const known = new Set<string>(BUILTIN_TOOLS);
  for (const server of Object.keys(mcpServers)) known.add(`${server}/*`);
  const own = tools.map(({ name }) => name);
  for (const name of own) if (name !== undefined) known.add(name);
  for (const [list, entries] of Object.entries({ agents, templates })) {
    for (const [path, name] of toolsIn(entries)) {
      if (name === undefined || known.has(name) || parseGrant(name)) continue;
      const message = unknownName(`there is no tool "${name}"`, name, [...known]);
      yield { path: [list, ...path], message };
    }
  }
  for (const [index, name] of own.entries()) {
    const path = ['tools', index, 'name'];
    yield* usedTwice(own, index, path);
    if (name !== undefined && (BUILTIN_TOOLS.includes(name) || name === LOAD_SKILL))
      yield { path, message: `"${name}" is the name of a tool that comes with Troupe` };
  }
  yield* grantProblems({ agents, servers: mcpServers });
  for (const { path, message } of grantProblems({ agents: templates, servers: mcpServers })) {
    if (path[0] === 'agents') yield { path: ['templates', ...path.slice(1)], message };
  }
}

/** A pattern that matches no tool would look like a protection and protect nothing. */
function* approvalProblems({
  agents,
  templates,
}: Pick<z.infer<typeof Sketch>, 'agents' | 'templates'>): Generator<Problem> {
  for (const [list, entries] of Object.entries({ agents, templates })) {
    for (const [index, { tools, needsApproval = [] }] of entries.entries()) {
      const names = tools.filter((name) => name !== undefined);
      for (const [at, pattern] of needsApproval.entries()) {
        if (pattern === undefined || isGranted(pattern, names)) continue;
        const message = unknownName(`"${pattern}" is not among the tools of this agent`, pattern, names);
        yield { path: [list, index, 'needsApproval', at], message };
      }
    }
  }
}

function isGranted(pattern: string, names: readonly string[]): boolean {
  const grant = parseGrant(pattern);
  if (names.includes(pattern)) return true;
  if (grant?.tool === null) return names.some((name) => parseGrant(name)?.server === grant.server);
  return grant !== null && !isExtra(grant.tool) && names.includes(`${grant.server}/*`);
}

function* toolsIn(agents: z.infer<typeof AgentSketches>): Generator<[PropertyKey[], string | undefined]> {
  for (const [index, { tools }] of agents.entries()) {
    for (const [at, name] of tools.entries()) yield [[index, 'tools', at], name];
  }
}
