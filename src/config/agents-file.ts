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
  /** One line for colleagues, shown in every agent's roster. */
  description: z.string().max(300).default(''),
  /** What it is good at, for routing by capability. */
  capabilities: z.array(z.string().min(1).max(100)).max(100).optional(),
  instructions: z.string().default(''),
  tools: z.array(z.string()).default([]),
  /** What a newcomer sees of what came before: all of it, a summary and the newest, or the trigger only. */
  join: z.enum(['full', 'summary', 'fresh']).default('full'),
  /**
   * What becomes of a message to it while it is at work: it waits for the next turn, is seen by the next step, breaks the
   * turn off, or is refused. A message may say otherwise.
   */
  whileBusy: BusyPolicy.default('queue'),
  /** How long a call waits for a server of its model that is away: that restarts, or loads the model. */
  retry: RetrySettings.prefault({}),
  /** What its replies must be, as a zod schema or a JSON schema: they come as data. Default: words. */
  reply: z.custom<ReplyInput>().superRefine(refineReply).optional(),
  /** What it leaves out is taken from the troupe's. */
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

// Loose where it runs, strict where it is typed: unknown fields reach `unknownFields`, and editors still mark them.
const LooseAgentFields = AgentFields.loose() as unknown as typeof AgentFields;
export const AgentDefinition = z.preprocess(
  withoutUndefined,
  z.intersection(LooseAgentFields, ProviderSettings),
) as unknown as z.ZodIntersection<typeof AgentFields, typeof ProviderSettings>;
export type AgentDefinition = z.infer<typeof AgentDefinition>;
/** As written: everything with a default may be left out. */
export type AgentInput = z.input<typeof AgentDefinition>;

/** A field that is written out as undefined is one that was left out; the intersection would take it for a contradiction. */
function withoutUndefined(agent: unknown): unknown {
  if (typeof agent !== 'object' || agent === null || Array.isArray(agent)) return agent;
  return Object.fromEntries(Object.entries(agent).filter(([, value]) => value !== undefined));
}

/** Over all processes. */
const ProviderCaps = z.strictObject({
  /** Turns at once. */
  turns: z.int().min(1).optional(),
  callsPerMinute: z.int().min(1).optional(),
  /** Calls that may come at once after a pause; default a tenth of `callsPerMinute`. */
  burst: z.int().min(1).optional(),
});

const Limits = z
  .strictObject({
    /** How long an actor stays with a process that is gone, ms. Default 30 s. */
    leaseMs: z.int().min(1_000).optional(),
    /** Pause between looks for work that no wake is left for, ms. Default 20 s. */
    sweepMs: z.int().min(500).optional(),
    maxAttempts: z.int().min(1).optional(),
    maxSteps: z.int().min(1).optional(),
    /** Steps in a row whose calls give nothing that the turn was not told before; then it ends. Default 10. */
    maxRepeats: z.int().min(1).optional(),
    /** What agents pass on to agents, one after the other, since a person spoke. Default 64. */
    maxHops: z.int().min(1).optional(),
    /** Turns in one conversation since a person spoke. Default 200. */
    maxAgentTurns: z.int().min(1).optional(),
    /** Tasks within tasks. Default 5. */
    maxDepth: z.int().min(1).optional(),
    /** Tasks that one agent may have open in one conversation. Default 64. */
    maxOpenTasks: z.int().min(1).optional(),
    /** Tasks that may come of one message of a person or a schedule, however deep. Default 1,000. */
    maxTreeTasks: z.int().min(1).optional(),
    /** How many of those may be open at once. Default 256. */
    maxTreeOpen: z.int().min(1).optional(),
    /** What the model calls for those may take, prompts and answers. Default 100,000,000. */
    maxTreeTokens: z.int().min(1).optional(),
    /** After this a task is called off, ms. Default a day. */
    taskMs: z.int().min(1).optional(),
    /** After this a question is not answered any more, and an approval is denied, ms. Default a week. */
    questionMs: z.int().min(1).optional(),
    approvalMs: z.int().min(1).optional(),
    previewBytes: z.int().min(256).optional(),
    /** Turns at once of one tenant, over all processes. */
    turnsPerTenant: z.int().min(1).optional(),
    /** Actors of one tenant that wait for their turn; above it messages that would wake one are refused, and tasks. Default 50,000. */
    pendingPerTenant: z.int().min(1).optional(),
    /** By provider name. */
    providers: z.record(z.string(), ProviderCaps).optional(),
  })
  .default({});

export const TroupeDefinition = z.strictObject({
  agents: z.array(AgentDefinition).min(1, 'a troupe needs at least one agent'),
  /** Agents that are let in by `spawn`: those of the template `coder` are `coder-1`, `coder-2` and so on. */
  templates: z.array(AgentDefinition).optional(),
  ...CoordinationSettings,
  /** What conversations can be taken through, step by step. */
  workflows: Workflows.optional(),
  tools: z.array(z.custom<Tool>((value) => isTool(value), 'a tool is made with defineTool')).default([]),
  /** Servers whose tools agents are granted as `NAME/tool` or `NAME/*`. */
  mcpServers: McpServers.optional(),
  defaults: z.strictObject({ respondWhenUnaddressed: AgentId.optional() }).default({}),
  limits: Limits,
  /** What model calls may cost: of a tenant, a conversation, an agent. */
  budgets: BudgetSettings.optional(),
  /** How agents are held to what they have set out to do. */
  supervision: SupervisionSettings.optional(),
  context: ContextSettings.prefault({}),
  /** What the application adds to prompts. A JSON file may hold static ones with fixed texts. */
  fragments: z.array(Fragment).optional(),
  /** What becomes of a hand-over whose goal the agent leaves out: refused, taken from the log, or asked of a model. */
  handoffs: z.enum(['agent', 'extract', 'summarise']).optional(),
  redact: RedactSetting.optional(),
  /** Who is let in by what an application signs for its own users, beside keys. */
  access: AccessSettings.optional(),
  /** Where webhooks may lead, and how long they are tried. */
  webhooks: WebhookSettings.optional(),
  /** Settings of `@troupe/nostr`, which validates them when it is loaded. */
  nostr: z.record(z.string(), z.unknown()).optional(),
  /** What agents with the tool `fetch`, and attachments by address, may reach. */
  fetch: FetchSettings.optional(),
});
export type TroupeDefinition = z.infer<typeof TroupeDefinition>;
export interface TroupeInput extends CoordinationInput {
  agents: AgentInput[];
  /** Agents that are let in by `spawn`: those of the template `coder` are `coder-1`, `coder-2` and so on. */
  templates?: AgentInput[] | undefined;
  tools?: Tool[];
  /** Where tools from outside come from; agents are granted them as `NAME/tool` or `NAME/*`. */
  mcpServers?: z.input<typeof McpServers> | undefined;
  /** What conversations can be taken through, one step after the other, by the command `run`. */
  workflows?: z.input<typeof Workflows> | undefined;
  defaults?: { respondWhenUnaddressed?: string | undefined };
  limits?: z.input<typeof Limits>;
  /** What model calls may cost, in tokens and US dollars: of a tenant, a conversation, an agent. Default: anything. */
  budgets?: z.input<typeof BudgetSettings> | undefined;
  /** How agents are held to what they have set out to do, before a turn ends. */
  supervision?: z.input<typeof SupervisionSettings> | undefined;
  /** Budgets of prompts, and how they are kept. */
  context?: z.input<typeof ContextSettings> | undefined;
  fragments?: z.input<typeof Fragment>[] | undefined;
  /** Default `extract`. */
  handoffs?: 'agent' | 'extract' | 'summarise' | undefined;
  /** What is made of every text before it is stored, see `redactSecrets`; the same text must give the same every time. */
  redact?: RedactText | undefined;
  /** Tokens of an application's own users that the HTTP API takes, beside keys. */
  access?: z.input<typeof AccessSettings> | undefined;
  /** Where webhooks may lead: by default to every public host. */
  webhooks?: z.input<typeof WebhookSettings> | undefined;
  /** Nostr relays that the troupe listens and speaks to: `NostrInput` of `@troupe/nostr`, which must be installed. */
  nostr?: Readonly<Record<string, unknown>> | undefined;
  /** What agents with the tool `fetch`, and attachments by address, may reach. Without it nothing is fetched for attachments. */
  fetch?: z.input<typeof FetchSettings> | undefined;
}

/** For `agents.ts`: types and completion, nothing else. */
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
/** The readable parts of a definition that may be broken anywhere: one problem must not hide the others. */
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

/** Fields of agents that mean nothing to this version, with what may have been meant; for warnings. */
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

/** Validates a definition; every problem is named with its path. Throws `config_invalid`. */
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
