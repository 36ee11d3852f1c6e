import * as z from 'zod';
import { AccessSettings } from '../access/index.ts';
import type { AgentInput } from './agent-input.ts';
import type { Checked, KnownInput, TroupeInput } from './troupe-input.ts';
import { AgentDefinition, PROVIDER_NAMES } from './agent-definition.ts';
import { type AppField, AppSetting } from './app.ts';
import { BudgetSettings } from './budget-settings.ts';
import { Fragment } from '../../context/index.ts';
import { ContextSettings } from './context-settings.ts';
import { CoordinationSettings, Workflows } from './coordination-settings.ts';
import { TroupeError } from '../../base/errors.ts';
import { CustomProviderSetting } from '../../providers/settings.ts';
import { AgentId, Channel, inputProblems, nearestName, tryParse } from '../../events/index.ts';
import { formerIds } from './former-ids.ts';
import { findProblems } from './find-problems.ts';
import type { DataFile } from './read-data-file.ts';
import { LimitSettings } from './limit-settings.ts';
import { FetchSettings } from '../../base/net/settings.ts';
import { type Door, DOORS, isDoor } from '../integrations/door.ts';
import { WebhookSettings } from '../integrations/webhook-settings.ts';
import { endlessOptions } from './endless-options.ts';
import type { Problem } from './problem.ts';
import { RedactSetting } from './redact-secrets.ts';
import { SupervisionSettings } from './supervision-settings.ts';
import { McpServers } from '../../tools/mcp/settings.ts';
import type { Tool } from '../../tools/tool.ts';

const DoorSetting = z.union(
  [z.enum(DOORS), z.custom<Door>((value) => isDoor(value)).meta({ type: 'object' })],
  { error: `is one of ${DOORS.join(', ')}, or made with defineDoor` },
);

export const TroupeDefinition = z.strictObject({
  /** JSON schema for editors, in a JSON file. Ignored. */
  $schema: z.string().optional(),
  agents: z.array(AgentDefinition).min(1, 'a troupe needs at least one agent'),
  templates: z.array(AgentDefinition).optional(),
  ...CoordinationSettings,
  workflows: Workflows.optional(),
  tools: z.array(z.custom<Tool>((value) => isTool(value), 'a tool is made with defineTool')).default([]),
  app: AppSetting.optional(),
  providers: z.record(z.string(), CustomProviderSetting).optional(),
  mcpServers: McpServers.optional(),
  defaults: z
    .strictObject({
      respondWhenUnaddressed: AgentId.optional(),
      afterHandoff: z.enum(['receiver', 'default']).optional(),
    })
    .default({}),
  limits: LimitSettings,
  budgets: BudgetSettings.optional(),
  supervision: SupervisionSettings.optional(),
  context: ContextSettings.prefault({}),
  fragments: z.array(Fragment).optional(),
  workspace: z.string().min(1).optional(),
  skills: z.array(z.string().min(1)).optional(),
  machine: z.enum(['system', 'host']).optional(),
  channels: z.record(Channel, z.string().min(1).max(500)).optional(),
  handoffs: z.enum(['agent', 'extract', 'summarise']).optional(),
  redact: RedactSetting.optional(),
  access: AccessSettings.optional(),
  doors: z.array(DoorSetting).optional(),
  webhooks: WebhookSettings.optional(),
  nostr: z.record(z.string(), z.unknown()).optional(),
  fetch: FetchSettings.optional(),
});
export type TroupeDefinition = z.infer<typeof TroupeDefinition>;

export type { TroupeInput };

function isTool(value: unknown): value is Tool {
  return typeof value === 'object' && value !== null && 'name' in value && 'run' in value && 'check' in value;
}

/** Returns its argument: gives an `agents.ts` types and completion. */
export function defineTroupe<
  const Agent extends AgentInput,
  const Given extends Tool = never,
  const Template extends AgentInput = never,
>(
  definition: KnownInput<Agent & Checked<Agent, NoInfer<Given>['name']>, Given, Template> & AppField<Given>,
): KnownInput<Agent, Given, Template> & AppField<Given> {
  return definition as unknown as KnownInput<Agent, Given, Template> & AppField<Given>;
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
  // Both halves of an agent's schema may say the same.
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
