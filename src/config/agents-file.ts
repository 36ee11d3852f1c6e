import * as z from 'zod';
import { AccessSettings } from '../access/index.ts';
import { AgentDefinition, notAField, PROVIDER_NAMES } from './agent-definition.ts';
import { BudgetSettings } from './budget-settings.ts';
import { Fragment } from '../context/index.ts';
import { ContextSettings } from './context-settings.ts';
import { CoordinationSettings, Workflows } from './coordination-settings.ts';
import { TroupeError } from '../errors.ts';
import type { CustomProvider } from '../providers/provider.ts';
import { AgentId, Channel, nearestName } from '../events/index.ts';
import { findProblems } from './find-problems.ts';
import type { DataFile } from './read-data-file.ts';
import { LimitSettings } from './limit-settings.ts';
import { FetchSettings } from '../net/settings.ts';
import { WebhookSettings } from '../integrations/webhook-settings.ts';
import type { Problem } from './problem.ts';
import { RedactSetting } from './redact-secrets.ts';
import { SupervisionSettings } from './supervision-settings.ts';
import { McpServers } from '../tools/mcp/settings.ts';
import type { Tool } from '../tools/tool.ts';

export const TroupeDefinition = z.strictObject({
  /** JSON schema for editors, in a JSON file. Ignored. */
  $schema: z.string().optional(),
  agents: z.array(AgentDefinition).min(1, 'a troupe needs at least one agent'),
  /** Templates of agents that the command `spawn` creates: `coder` becomes `coder-1`, `coder-2` and so on. */
  templates: z.array(AgentDefinition).optional(),
  ...CoordinationSettings,
  /** Sequences of steps that the command `run` takes a conversation through. */
  workflows: Workflows.optional(),
  tools: z.array(z.custom<Tool>((value) => isTool(value), 'a tool is made with defineTool')).default([]),
  /** Models that the program brings, by name: made with `defineProvider`. Agents use one with `provider: 'custom', adapter: NAME`. */
  providers: z
    .record(
      z.string(),
      z.custom<CustomProvider>((value) => isProvider(value), 'a provider is made with defineProvider'),
    )
    .optional(),
  /** MCP servers by name. Agents are granted their tools as `NAME/tool` or `NAME/*`. */
  mcpServers: McpServers.optional(),
  defaults: z
    .strictObject({
      /** The agent for messages of people that name no agent and match no route. Default: none; they wake nobody. */
      respondWhenUnaddressed: AgentId.optional(),
      /**
       * Who gets such messages after a hand-over: the agent that the conversation was handed over to last (`receiver`), or
       * still `respondWhenUnaddressed` (`default`). Default `receiver`.
       */
      afterHandoff: z.enum(['receiver', 'default']).optional(),
    })
    .default({}),
  limits: LimitSettings,
  /** Caps on the cost of model calls, in tokens and US dollars: per tenant, conversation and agent. Default: no caps. */
  budgets: BudgetSettings.optional(),
  /** Corrections of agents that end a turn with work left. */
  supervision: SupervisionSettings.optional(),
  /** Sizes of prompts, and their compaction. */
  context: ContextSettings.prefault({}),
  /** Texts that the application adds to prompts. In a JSON file only static ones with fixed texts. */
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
   * What prompts say of the machine: operating system, architecture and time zone (`system`), and the host name too
   * (`host`). For agents whose tools run there. Where workers differ, a move to another one is told. Default: nothing.
   */
  machine: z.enum(['system', 'host']).optional(),
  /** What agents that speak with people are told of a door, by its name in `context.channel`: what it shows, and what not. */
  channels: z.record(Channel, z.string().min(1).max(500)).optional(),
  /** Goal of a handoff that names none: refused (`agent`), taken from the log (`extract`), or written by a model (`summarise`). Default `extract`. */
  handoffs: z.enum(['agent', 'extract', 'summarise']).optional(),
  /** Changes every text before it is stored; must be deterministic. See `redactSecrets`. Default: no change. */
  redact: RedactSetting.optional(),
  /** Tokens that an application signs for its own users. The HTTP API accepts them beside keys. */
  access: AccessSettings.optional(),
  /** Allowed targets of webhooks, and time limits. Default: all public hosts. */
  webhooks: WebhookSettings.optional(),
  /** Nostr relays to listen and publish to: `NostrInput` of `@troupe/nostr`, which must be installed and validates them. Default: none. */
  nostr: z.record(z.string(), z.unknown()).optional(),
  /** Allowed targets of the tool `fetch` and of attachments by address. Default: attachments by address are refused. */
  fetch: FetchSettings.optional(),
});
export type TroupeDefinition = z.infer<typeof TroupeDefinition>;
/** A definition as it is written. Fields with a default may be left out. */
export type TroupeInput = z.input<typeof TroupeDefinition>;

function isProvider(value: unknown): boolean {
  return typeof value === 'function' || (typeof value === 'object' && value !== null && 'stream' in value);
}

function isTool(value: unknown): value is Tool {
  return typeof value === 'object' && value !== null && 'name' in value && 'run' in value && 'check' in value;
}

/** Returns its argument: gives an `agents.ts` types and completion. */
export function defineTroupe(definition: TroupeInput): TroupeInput {
  return definition;
}

/** Validates a definition. Throws `config_invalid`, which names every problem with its path, and its line where `lineOf` knows it. */
export function parseTroupe(
  input: unknown,
  source = 'the definition',
  lineOf: DataFile['lineOf'] = () => null,
): TroupeDefinition {
  const parsed = TroupeDefinition.safeParse(input, { reportInput: true });
  const found = [...(parsed.error?.issues ?? []).flatMap(problemsOf), ...findProblems(input)];
  if (parsed.success && found.length === 0) return parsed.data;
  const problems = found.map(({ path, message }) => `${formatPath(path)}: ${message}`);
  const placed = found.map(({ path }, index) => {
    const line = lineOf(path);
    return `${line === null ? '' : `${source}:${line} `}${problems[index]}`;
  });
  throw new TroupeError(
    'config_invalid',
    `${source} has ${problems.length} problem(s):\n  ${placed.join('\n  ')}`,
    { problems },
  );
}

function problemsOf(issue: z.core.$ZodIssue): Problem[] {
  const { path } = issue;
  if (issue.code === 'unrecognized_keys') {
    const known = path.length === 0 ? Object.keys(TroupeDefinition.shape) : [];
    return issue.keys.map((key) => ({ path: [...path, key], message: notAField(key, known) }));
  }
  if (path.at(-1) === 'provider' && issue.code === 'invalid_union')
    return [{ path, message: unknownProvider(issue.input) }];
  const isMissing = issue.input === undefined && path.length > 0 && issue.code !== 'custom';
  return [{ path, message: isMissing ? 'is missing' : issue.message }];
}

/** `agent`: as it was given. */
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
