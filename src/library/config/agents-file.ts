import * as z from 'zod';
import { AccessSettings } from '../access/index.ts';
import { AgentDefinition, PROVIDER_NAMES, SupervisionSetting } from './agent-input.ts';
import { AppSetting } from './app.ts';
import { BudgetSettings } from './budget-settings.ts';
import { Fragment } from '../../context/index.ts';
import { ContextSettings } from './context-settings.ts';
import { CoordinationSettings, Workflows } from './coordination-settings.ts';
import { TroupeError } from '../../base/errors.ts';
import { CustomProviderSetting } from '../../providers/settings.ts';
import { AgentId, Channel, inputProblems, nearestName, tryParse } from '../../events/index.ts';
import { formerIds } from './former-ids.ts';
import type { InputOf } from '../../base/input-of.ts';
import { findProblems } from './find-problems.ts';
import type { DataFile } from './read-data-file.ts';
import { FetchSettings } from '../../base/net/settings.ts';
import { type Door, DOORS, isDoor } from '../integrations/door.ts';
import { WebhookSettings } from '../integrations/webhook-settings.ts';
import type { Problem } from './problem.ts';
import { RedactSetting } from './redact-secrets.ts';
import { McpServers } from '../../tools/mcp/settings.ts';
import type { Tool } from '../../tools/tool.ts';

const Count = z.int().min(1).optional();
const Milliseconds = z.int().min(1).optional();

const ProviderCaps = z.strictObject({
  /** Most concurrent turns. Default: no limit. */
  turns: Count,
  /** Most model calls in a minute, a tenth of them at once after a pause. Default: no limit. */
  callsPerMinute: Count,
});

const Limits = z.strictObject({
  /**
   * How long an actor stays assigned to a process that has died, ms. Work whose wake was lost is found within twice
   * this time. At least 1,000. Default 10,000.
   */
  leaseMs: z.int().min(1_000).optional(),
  /** Most model calls in one turn. A turn that needs more fails and tells people how to continue. Default 50. */
  maxSteps: Count,
  /** Most turns in one conversation since a person spoke. Default 200. */
  maxAgentTurns: Count,
  /** Most tasks, at any depth, that one message of a person or a schedule may cause. Default 1,000. */
  maxTreeTasks: Count,
  /** Time limit of a task, ms: then it is cancelled. Default 1 day. */
  taskMs: Milliseconds,
  /** Time limit of a question, ms: then it can no longer be answered. Default 1 week. */
  questionMs: Milliseconds,
  /** Time limit of an approval, ms: then it is denied. Default 1 week. */
  approvalMs: Milliseconds,
  /** Most concurrent turns of one tenant, over all processes. Default: no limit. */
  turnsPerTenant: Count,
  /**
   * Most actors of one tenant that wait for a turn. Further messages and tasks that would wake one are refused with
   * `tenant_busy`. Default 50,000.
   */
  pendingPerTenant: Count,
  /** Limits by name of the provider, such as `anthropic`. Default: none. */
  providers: z.record(z.string(), ProviderCaps).optional(),
});
/** The `limits` block of a definition. All fields are optional; times are in milliseconds. */
export interface LimitInput extends InputOf<typeof Limits> {}

const LimitSettings = Limits.default({});

const DoorSetting = z.union(
  [z.enum(DOORS), z.custom<Door>((value) => isDoor(value)).meta({ type: 'object' })],
  { error: `is one of ${DOORS.join(', ')}, or made with defineDoor` },
);

export const TroupeDefinition = z.strictObject({
  /** JSON schema for editors, in a JSON file. Ignored. */
  $schema: z.string().optional(),
  /** The agents, at least one. */
  agents: z.array(AgentDefinition).min(1, 'a troupe needs at least one agent'),
  /** Templates of agents that the command `spawn` creates: `coder` becomes `coder-1`, `coder-2` and so on. Default: none. */
  templates: z.array(AgentDefinition).optional(),
  ...CoordinationSettings,
  /** Sequences of steps that the command `run` takes a conversation through. Default: none. */
  workflows: Workflows.optional(),
  /** Tools of the program's own, made with `defineTool`. Agents may call those that their `tools` name. Default: none. */
  tools: z.array(z.custom<Tool>((value) => isTool(value), 'a tool is made with defineTool')).default([]),
  /**
   * Opens what tools receive as `context.app`, such as a database, when a troupe is opened: a function, which may be
   * async. Its result is closed after the troupe, by `Symbol.asyncDispose`, `Symbol.dispose` or `close`. Default: the
   * export `app` of the agents file, else nothing.
   */
  app: AppSetting.optional(),
  /** Models that the program brings, by name: made with `defineProvider`. Agents use one with `provider: 'custom', adapter: NAME`. */
  providers: z.record(z.string(), CustomProviderSetting).optional(),
  /** MCP servers by name. Agents are granted their tools as `NAME/tool` or `NAME/*`. Default: none. */
  mcpServers: McpServers.optional(),
  /** Who answers messages that name no agent. */
  defaults: z
    .strictObject({
      /**
       * Id of the agent that answers messages of people that name no agent and match no route. Default: none; until a
       * handoff, they wake nobody.
       */
      respondWhenUnaddressed: AgentId.optional(),
      /**
       * Who answers such messages after a handoff: the agent that the conversation was last handed over to
       * (`receiver`), or still `respondWhenUnaddressed` (`default`). Default `receiver`.
       */
      afterHandoff: z.enum(['receiver', 'default']).optional(),
    })
    .default({}),
  /** Limits of turns, tasks, waits and load. */
  limits: LimitSettings,
  /** Caps on the cost of model calls, in tokens and US dollars: per tenant, conversation and agent. Default: no caps. */
  budgets: BudgetSettings.optional(),
  /** Whether an agent that ends its turn with open items is told to continue, at most three times without progress. Default true. */
  supervision: SupervisionSetting.optional(),
  /** Sizes of prompts, and their compaction. */
  context: ContextSettings.prefault({}),
  /** Texts that the application adds to prompts. A JSON file can have only static ones with fixed texts. Default: none. */
  fragments: z.array(Fragment).optional(),
  /**
   * Directory whose AGENTS.md, IDENTITY.md and SOUL.md are part of every agent's prompt, relative to the agents file.
   * Read again at each turn; a change begins a new epoch. Default: none are read.
   */
  workspace: z.string().min(1).optional(),
  /**
   * Directories of skills, relative to the agents file: each folder in them with a SKILL.md is one. Prompts list names and
   * descriptions; the tool `load_skill`, which every agent with skills has, reads the rest. Default: none.
   */
  skills: z.array(z.string().min(1)).optional(),
  /**
   * What prompts say of the machine: operating system, architecture and time zone (`system`), or also the host name
   * (`host`). For agents whose tools run there. If workers differ, prompts mention a move to another one. Default:
   * nothing.
   */
  machine: z.enum(['system', 'host']).optional(),
  /** What agents that talk to people are told about a door, by its `context.channel`: what it can show. Default: nothing. */
  channels: z.record(Channel, z.string().min(1).max(500)).optional(),
  /**
   * Source of the goal of a handoff that names none: the handoff is refused (`agent`), or the goal is taken from the
   * log (`extract`) or written by a model (`summarise`). Default `extract`.
   */
  handoffs: z.enum(['agent', 'extract', 'summarise']).optional(),
  /**
   * Hides whatever looks like a key, a token, a card number or a named password in logs, traces, recordings and
   * exports. To hide it in what is stored and sent, use `redact`. Default true.
   */
  hideSecrets: z.boolean().optional(),
  /** Changes every text before it is stored. Must be deterministic. See `redactSecrets`. Default: no change. */
  redact: RedactSetting.optional(),
  /** Tokens that an application signs for its own users, and rates. The HTTP API accepts them beside keys. */
  access: AccessSettings.optional(),
  /**
   * Protocols of other clients that the HTTP API speaks: names of doors of `@troupe/doors`, which must be installed,
   * and doors made with `defineDoor`. Default: none.
   */
  doors: z.array(DoorSetting).optional(),
  /** Allowed targets of webhooks. Default: all public hosts. */
  webhooks: WebhookSettings.optional(),
  /** Nostr relays to listen and publish to: `NostrInput` of `@troupe/nostr`, which must be installed and validates them. Default: none. */
  nostr: z.record(z.string(), z.unknown()).optional(),
  /** Allowed targets of the tool `fetch` and of attachments by address. Default: attachments by address are refused. */
  fetch: FetchSettings.optional(),
});
export type TroupeDefinition = z.infer<typeof TroupeDefinition>;

/**
 * A definition as it is written. Fields with a default may be left out. Anything wrong is `config_invalid`, with the
 * path of each problem.
 */
export interface TroupeInput extends InputOf<typeof TroupeDefinition> {}

function isTool(value: unknown): value is Tool {
  return typeof value === 'object' && value !== null && 'name' in value && 'run' in value && 'check' in value;
}

/** Validates a definition. Throws `config_invalid`, which names every problem with its path, and its line where `lineOf` knows it. */
export function parseTroupe(
  input: unknown,
  source = 'the definition',
  lineOf: DataFile['lineOf'] = () => null,
): TroupeDefinition {
  const endless = [...endlessOptions(input)];
  const parsed = endless.length > 0 ? null : tryParse(TroupeDefinition, input);
  const found = parsed
    ? [...(parsed.error?.issues ?? []).flatMap(problemsOf), ...findProblems(input)]
    : endless;
  if (parsed?.success && found.length === 0) return withPresentAgents(parsed.data);
  // Both halves of an agent's schema may report the same problem.
  const lines = new Map(found.map(({ path, message }) => [`${formatPath(path)}: ${message}`, lineOf(path)]));
  const problems = [...lines.keys()];
  const placed = [...lines].map(([problem, line]) =>
    line === null ? problem : `${source}:${line} ${problem}`,
  );
  throw new TroupeError(
    'config_invalid',
    `${source} has ${problems.length} problem(s):\n  ${placed.join('\n  ')}`,
    { problems },
  );
}

/** The definition with the present ids of agents wherever it names them. */
function withPresentAgents(definition: TroupeDefinition): TroupeDefinition {
  const former = formerIds(definition.agents);
  if (!former) return definition;
  const present = (id: AgentId): AgentId => former.get(id) ?? id;
  const { defaults, context, routing, schedules, workflows, budgets, fragments } = definition;
  const { respondWhenUnaddressed } = defaults;
  return {
    ...definition,
    defaults: {
      ...defaults,
      ...(respondWhenUnaddressed && { respondWhenUnaddressed: present(respondWhenUnaddressed) }),
    },
    context: { ...context, ...(context.summariser && { summariser: present(context.summariser) }) },
    ...(routing && { routing: routedBy(routing, present) }),
    ...(schedules && { schedules: schedules.map((each) => ({ ...each, to: present(each.to) })) }),
    ...(workflows && {
      workflows: workflows.map(({ steps, ...workflow }) => ({
        ...workflow,
        steps: steps.map((step) => ({ ...step, agent: present(step.agent) })),
      })),
    }),
    ...(budgets?.agents && {
      budgets: {
        ...budgets,
        agents: Object.fromEntries(
          Object.entries(budgets.agents).map(([id, cap]) => [present(id as AgentId), cap]),
        ),
      },
    }),
    ...(fragments && {
      fragments: fragments.map((each) =>
        each.agents ? { ...each, agents: each.agents.map(present) } : each,
      ),
    }),
  };
}

type Routing = NonNullable<TroupeDefinition['routing']>;

function routedBy(routing: Routing, present: (id: AgentId) => AgentId): Routing {
  switch (routing.by) {
    case 'agent':
      return { ...routing, agent: present(routing.agent) };
    case 'round':
      return { ...routing, agents: routing.agents.map(present) };
    case 'capability':
      return routing.agents ? { ...routing, agents: routing.agents.map(present) } : routing;
    case 'rules':
      return { ...routing, rules: routing.rules.map((rule) => ({ ...rule, to: rule.to.map(present) })) };
  }
}

function problemsOf(issue: z.core.$ZodIssue): Problem[] {
  const { path } = issue;
  if (path.at(-1) === 'provider' && path.at(-2) !== 'embedder' && issue.code === 'invalid_union')
    return [{ path, message: unknownProvider(issue.input) }];
  return inputProblems(issue);
}

/** `agent`: as it was written. */
function unknownProvider(agent: unknown): string {
  const { provider } = (agent ?? {}) as { provider?: unknown };
  const known = `one of ${PROVIDER_NAMES.join(', ')}`;
  if (typeof provider !== 'string') return `is missing: ${known}`;
  const nearest = nearestName(provider, PROVIDER_NAMES);
  return `there is no provider "${provider}"; ${nearest ? `did you mean "${nearest}"? It is ` : 'it is '}${known}`;
}

function formatPath(path: readonly PropertyKey[]): string {
  if (path.length === 0) return '(top)';
  return path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '');
}

const MAX_DEPTH = 100;

/**
 * `providerOptions` that contain themselves, or are nested too deeply to be sent. Checked before the schema, which
 * would never end on them.
 */
function* endlessOptions(input: unknown): Generator<Problem> {
  for (const field of ['agents', 'templates']) {
    const agents: unknown = (input as Record<string, unknown> | null | undefined)?.[field];
    if (!Array.isArray(agents)) continue;
    for (const [index, agent] of agents.entries()) {
      const options = (agent as { providerOptions?: unknown } | null | undefined)?.providerOptions;
      if (!isEndless(options)) continue;
      const message = `contains itself, or is nested deeper than ${MAX_DEPTH} levels: give plain JSON`;
      yield { path: [field, index, 'providerOptions'], message };
    }
  }
}

function isEndless(value: unknown, above: readonly unknown[] = []): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (above.length >= MAX_DEPTH || above.includes(value)) return true;
  return Object.values(value).some((part) => isEndless(part, [...above, value]));
}
