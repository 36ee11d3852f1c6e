import * as z from 'zod';
import { AccessSettings } from '../access/index.ts';
import { BudgetSettings, budgetProblems, BudgetSketch } from './budget-settings.ts';
import { Fragment } from '../context/index.ts';
import { ContextSettings } from './context-settings.ts';
import {
  type CoordinationInput,
  templateOf,
  coordinationProblems,
  CoordinationSettings,
  workflowProblems,
  Workflows,
} from './coordination-settings.ts';
import { TroupeError } from '../errors.ts';
import { AgentId, BusyPolicy, nearestName } from '../events/index.ts';
import { fragmentProblems } from './fragments.ts';
import { FetchSettings } from '../net/settings.ts';
import { WebhookSettings } from '../integrations/webhook-settings.ts';
import { ProviderSettings } from '../providers/settings.ts';
import { RetrySettings } from './retry-settings.ts';
import { RedactSetting } from './redact-secrets.ts';
import type { RedactText } from '../actors/log/redaction.ts';
import { replyProblem, type ReplyInput } from './reply-schema.ts';
import { SupervisionSettings } from './supervision-settings.ts';
import { grantProblems, parseGrant } from '../tools/mcp/grants.ts';
import { BUILTIN_TOOLS } from '../tools/builtin/index.ts';
import { McpServers } from '../tools/mcp/settings.ts';
import type { Tool } from '../tools/tool.ts';

const AgentFields = z.object({
  id: AgentId,
  name: z.string().min(1).max(200).optional(),
  role: z.enum(['manager', 'worker', 'peer']).default('peer'),
  /** One line for the other agents, shown in their rosters. Default: none. */
  description: z.string().max(300).default(''),
  /** Skills, for routing by capability. */
  capabilities: z.array(z.string().min(1).max(100)).max(100).optional(),
  instructions: z.string().default(''),
  tools: z.array(z.string()).default([]),
  /**
   * What the agent sees of a conversation from before it joined: everything (`full`), a summary and the newest events
   * (`summary`), or only the message that woke it (`fresh`). Default `full`.
   */
  join: z.enum(['full', 'summary', 'fresh']).default('full'),
  /**
   * Treatment of a message while the agent has a turn under way: it waits for the next turn (`queue`), joins the next step
   * (`steer`), aborts the turn (`interrupt`), or is refused (`reject`). A message may override it. Default `queue`.
   */
  whileBusy: BusyPolicy.default('queue'),
  /** How long a call waits for a model server that is restarting or loading the model. */
  retry: RetrySettings.prefault({}),
  /** Schema of the replies, as a zod schema or a JSON schema: replies are data then. Default: plain text. */
  reply: z.custom<ReplyInput>().superRefine(refineReply).optional(),
  /** Overrides fields of the troupe's `supervision`. */
  supervision: SupervisionSettings.optional(),
  pubkey: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'a pubkey is 64 lower-case hex digits')
    .optional(),
});

function refineReply(reply: unknown, context: z.RefinementCtx): void {
  const message = replyProblem(reply);
  if (message !== null) context.addIssue({ code: 'custom', message });
}

// Loose at run time, so that `unknownFields` can warn; strict as a type, so that editors mark unknown fields.
const LooseAgentFields = AgentFields.loose() as unknown as typeof AgentFields;
export const AgentDefinition = z.preprocess(
  withoutUndefined,
  z.intersection(LooseAgentFields, ProviderSettings),
) as unknown as z.ZodIntersection<typeof AgentFields, typeof ProviderSettings>;
export type AgentDefinition = z.infer<typeof AgentDefinition>;
/** An agent of a definition. Fields with a default may be left out. */
export type AgentInput = z.input<typeof AgentDefinition>;

/** Drops fields with the value undefined: the intersection would report them as conflicts. */
function withoutUndefined(agent: unknown): unknown {
  if (typeof agent !== 'object' || agent === null || Array.isArray(agent)) return agent;
  return Object.fromEntries(Object.entries(agent).filter(([, value]) => value !== undefined));
}

/** Limits of one provider, over all processes. */
const ProviderCaps = z.strictObject({
  /** Most concurrent turns. Default: no limit. */
  turns: z.int().min(1).optional(),
  callsPerMinute: z.int().min(1).optional(),
  /** Calls allowed at once after a pause. Default: a tenth of `callsPerMinute`. */
  burst: z.int().min(1).optional(),
});

const Limits = z
  .strictObject({
    /** How long an actor stays assigned to a process that has died, ms. Default 30 s. */
    leaseMs: z.int().min(1_000).optional(),
    /** Pause between searches for work whose wake was lost, ms. Default 20 s. */
    sweepMs: z.int().min(500).optional(),
    maxAttempts: z.int().min(1).optional(),
    maxSteps: z.int().min(1).optional(),
    /** Consecutive steps whose calls return only what the turn has seen before; then it ends. Default 10. */
    maxRepeats: z.int().min(1).optional(),
    /** Longest chain of messages from agent to agent since a person spoke. Default 64. */
    maxHops: z.int().min(1).optional(),
    /** Most turns in one conversation since a person spoke. Default 200. */
    maxAgentTurns: z.int().min(1).optional(),
    /** Deepest nesting of tasks. Default 5. */
    maxDepth: z.int().min(1).optional(),
    /** Most open tasks of one agent in one conversation. Default 64. */
    maxOpenTasks: z.int().min(1).optional(),
    /** Most tasks, at any depth, that one message of a person or a schedule may cause. Default 1,000. */
    maxTreeTasks: z.int().min(1).optional(),
    /** Most of those tasks open at once. Default 256. */
    maxTreeOpen: z.int().min(1).optional(),
    /** Most tokens of the model calls for those tasks, prompts and answers together. Default 100,000,000. */
    maxTreeTokens: z.int().min(1).optional(),
    /** Deadline of a task, ms: then it is called off. Default 1 day. */
    taskMs: z.int().min(1).optional(),
    /** Deadline of a question, ms: then it can no longer be answered. Default 1 week. */
    questionMs: z.int().min(1).optional(),
    /** Deadline of an approval, ms: then it is denied. Default 1 week. */
    approvalMs: z.int().min(1).optional(),
    previewBytes: z.int().min(256).optional(),
    /** Most concurrent turns of one tenant, over all processes. Default: no limit. */
    turnsPerTenant: z.int().min(1).optional(),
    /** Most actors of one tenant waiting for a turn. Above it, messages that would wake one are refused, and tasks. Default 50,000. */
    pendingPerTenant: z.int().min(1).optional(),
    /** Limits by name of the provider. */
    providers: z.record(z.string(), ProviderCaps).optional(),
  })
  .default({});

export const TroupeDefinition = z.strictObject({
  agents: z.array(AgentDefinition).min(1, 'a troupe needs at least one agent'),
  /** Templates of agents that the command `spawn` creates: `coder` becomes `coder-1`, `coder-2` and so on. */
  templates: z.array(AgentDefinition).optional(),
  ...CoordinationSettings,
  /** Sequences of steps that the command `run` takes a conversation through. */
  workflows: Workflows.optional(),
  tools: z.array(z.custom<Tool>((value) => isTool(value), 'a tool is made with defineTool')).default([]),
  /** MCP servers by name. Agents are granted their tools as `NAME/tool` or `NAME/*`. */
  mcpServers: McpServers.optional(),
  defaults: z.strictObject({ respondWhenUnaddressed: AgentId.optional() }).default({}),
  limits: Limits,
  /** Caps on the cost of model calls: per tenant, conversation and agent. */
  budgets: BudgetSettings.optional(),
  /** Corrections of agents that end a turn with work left. */
  supervision: SupervisionSettings.optional(),
  context: ContextSettings.prefault({}),
  /** Texts that the application adds to prompts. In a JSON file only static ones with fixed texts. */
  fragments: z.array(Fragment).optional(),
  /** Goal of a handoff that names none: refused (`agent`), taken from the log (`extract`), or written by a model (`summarise`). Default `extract`. */
  handoffs: z.enum(['agent', 'extract', 'summarise']).optional(),
  redact: RedactSetting.optional(),
  /** Tokens that an application signs for its own users. The HTTP API accepts them beside keys. */
  access: AccessSettings.optional(),
  /** Allowed targets of webhooks, and time limits. */
  webhooks: WebhookSettings.optional(),
  /** Settings of `@troupe/nostr`, which validates them when it is loaded. */
  nostr: z.record(z.string(), z.unknown()).optional(),
  /** Allowed targets of the tool `fetch` and of attachments by address. */
  fetch: FetchSettings.optional(),
});
export type TroupeDefinition = z.infer<typeof TroupeDefinition>;
export interface TroupeInput extends CoordinationInput {
  agents: AgentInput[];
  /** Templates of agents that the command `spawn` creates: `coder` becomes `coder-1`, `coder-2` and so on. */
  templates?: AgentInput[] | undefined;
  tools?: Tool[];
  /** MCP servers by name. Agents are granted their tools as `NAME/tool` or `NAME/*`. */
  mcpServers?: z.input<typeof McpServers> | undefined;
  /** Sequences of steps that the command `run` takes a conversation through. */
  workflows?: z.input<typeof Workflows> | undefined;
  defaults?: { respondWhenUnaddressed?: string | undefined };
  limits?: z.input<typeof Limits>;
  /** Caps on the cost of model calls, in tokens and US dollars: per tenant, conversation and agent. Default: no caps. */
  budgets?: z.input<typeof BudgetSettings> | undefined;
  /** Corrections of agents that end a turn with work left. */
  supervision?: z.input<typeof SupervisionSettings> | undefined;
  /** Sizes of prompts, and their compaction. */
  context?: z.input<typeof ContextSettings> | undefined;
  /** Texts that the application adds to prompts. */
  fragments?: z.input<typeof Fragment>[] | undefined;
  /** Goal of a handoff that names none: refused (`agent`), taken from the log (`extract`), or written by a model (`summarise`). Default `extract`. */
  handoffs?: 'agent' | 'extract' | 'summarise' | undefined;
  /** Changes every text before it is stored; must be deterministic. See `redactSecrets`. Default: no change. */
  redact?: RedactText | undefined;
  /** Tokens that an application signs for its own users. The HTTP API accepts them beside keys. */
  access?: z.input<typeof AccessSettings> | undefined;
  /** Allowed targets of webhooks. Default: all public hosts. */
  webhooks?: z.input<typeof WebhookSettings> | undefined;
  /** Nostr relays to listen and publish to: `NostrInput` of `@troupe/nostr`, which must be installed. Default: none. */
  nostr?: Readonly<Record<string, unknown>> | undefined;
  /** Allowed targets of the tool `fetch` and of attachments by address. Default: attachments by address are refused. */
  fetch?: z.input<typeof FetchSettings> | undefined;
}

/** Returns its argument: gives an `agents.ts` types and completion. */
export function defineTroupe(definition: TroupeInput): TroupeInput {
  return definition;
}

interface Problem {
  path: PropertyKey[];
  message: string;
}

const Text = z.string().optional().catch(undefined);
const AgentSketches = z
  .array(
    z
      .object({
        id: Text,
        pubkey: Text,
        tools: z.array(Text).catch([]),
        provider: Text,
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
    tools: [],
    mcpServers: {},
    defaults: {},
    fragments: [],
    context: {},
    budgets: { agents: {} },
  });

/** Problems between parts of a definition. The schema reports missing and mistyped fields. */
function* crossProblems({
  agents,
  templates,
  routing,
  schedules,
  workflows,
  tools,
  mcpServers,
  defaults,
  fragments,
  context,
  budgets,
}: z.infer<typeof Sketch>): Generator<Problem> {
  yield* identityProblems(agents);
  yield* toolProblems({ agents, templates, tools, mcpServers });
  const ids = agents.map(({ id }) => id);
  const templateIds = templates.map(({ id }) => id);
  yield* coordinationProblems({ routing, schedules }, ids, templateIds);
  yield* workflowProblems(workflows, (agent) => {
    const found = agents.find(({ id }) => id === agent);
    return (found ?? templates.find(({ id }) => id === templateOf(agent)))?.tools ?? null;
  });
  yield* fragmentProblems(fragments, ids);
  const { summariser } = context;
  yield* budgetProblems(budgets, agents, summariser);
  if (summariser !== undefined && !ids.includes(summariser)) {
    yield { path: ['context', 'summariser'], message: `there is no agent "${summariser}"` };
  }
  const fallback = defaults.respondWhenUnaddressed;
  if (fallback !== undefined && !ids.includes(fallback)) {
    yield {
      path: ['defaults', 'respondWhenUnaddressed'],
      message: `there is no agent "${fallback}"; known: ${[...new Set(ids)].filter(Boolean).join(', ') || 'none'}`,
    };
  }
}

type AgentSketch = z.infer<typeof AgentSketches>[number];

function* identityProblems(agents: readonly AgentSketch[]): Generator<Problem> {
  const ids = agents.map(({ id }) => id);
  const keys = agents.map(({ pubkey }) => pubkey);
  for (const [index, { id, pubkey }] of agents.entries()) {
    if (id !== undefined && ids.indexOf(id) !== index) {
      yield { path: ['agents', index, 'id'], message: `"${id}" is used twice` };
    }
    if (pubkey && keys.indexOf(pubkey) !== index) {
      yield { path: ['agents', index, 'pubkey'], message: 'another agent has this pubkey' };
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
      const message = `there is no tool "${name}"; known: ${[...known].join(', ')}`;
      yield { path: [list, ...path], message };
    }
  }
  for (const [index, name] of own.entries()) {
    if (name === undefined) continue;
    const path = ['tools', index, 'name'];
    if (own.indexOf(name) !== index) yield { path, message: `"${name}" is used twice` };
    if (BUILTIN_TOOLS.includes(name))
      yield { path, message: `"${name}" is the name of a tool that comes with Troupe` };
  }
  yield* grantProblems({ agents, servers: mcpServers });
  for (const { path, message } of grantProblems({ agents: templates, servers: mcpServers })) {
    if (path[0] === 'agents') yield { path: ['templates', ...path.slice(1)], message };
  }
}

function* toolsIn(agents: z.infer<typeof AgentSketches>): Generator<[PropertyKey[], string | undefined]> {
  for (const [index, { tools }] of agents.entries()) {
    for (const [at, name] of tools.entries()) yield [[index, 'tools', at], name];
  }
}

function isTool(value: unknown): value is Tool {
  return (
    typeof value === 'object' && value !== null && 'name' in value && 'run' in value && 'schema' in value
  );
}

/** A warning for each unknown field of an agent, with the nearest known one. */
export function unknownFields(agents: readonly AgentDefinition[], list = 'agents'): string[] {
  return agents.flatMap((agent, index) => {
    const settings = ProviderSettings.options.find(({ shape }) => shape.provider.value === agent.provider);
    const known = [...Object.keys(AgentFields.shape), ...Object.keys(settings?.shape ?? {})];
    const unknown = Object.keys(agent).filter((field) => !known.includes(field));
    return unknown.map((field) => {
      const nearest = nearestName(field, known);
      return `${list}[${index}].${field} is not a field and is ignored${nearest ? `; did you mean "${nearest}"?` : ''}`;
    });
  });
}

/** Validates a definition. Throws `config_invalid`, which names every problem with its path. */
export function parseTroupe(input: unknown, source = 'the definition'): TroupeDefinition {
  const parsed = TroupeDefinition.safeParse(input, { reportInput: true });
  const found = [...(parsed.error?.issues ?? []).flatMap(problemsOf), ...crossProblems(Sketch.parse(input))];
  if (parsed.success && found.length === 0) return parsed.data;
  const problems = found.map(({ path, message }) => `${formatPath(path)}: ${message}`);
  throw new TroupeError(
    'config_invalid',
    `${source} has ${problems.length} problem(s):\n  ${problems.join('\n  ')}`,
    {
      problems,
    },
  );
}

function problemsOf(issue: z.core.$ZodIssue): Problem[] {
  const { path } = issue;
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...path, key], message: 'is not a field' }));
  }
  const isMissing = issue.input === undefined && path.length > 0 && issue.code !== 'custom';
  return [{ path, message: isMissing ? 'is missing' : issue.message }];
}

function formatPath(path: readonly PropertyKey[]): string {
  if (path.length === 0) return '(top)';
  return path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '');
}
