import path from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type AgentBase,
  type AgentInput,
  defineTool,
  loadAgentsFile,
  nearestName,
  type Provider,
  type ScriptInput,
  type Tool,
  type ToolContext,
  TroupeError,
  type TroupeInput,
  type TroupeOptions,
} from './troupe.ts';
import { withRecordedServers, type Recording } from './recording.ts';

/**
 * The company under test: a definition, the path or URL of an agents file, or only agents, the first of whom answers messages
 * that name nobody.
 */
export type Company = TroupeInput | readonly AgentInput[] | string | URL;

/** Further options of `createTroupe` for a run: `replay`, `record`, `env`, `app`, `integrations`. */
export type TroupeSettings = Pick<TroupeOptions, 'replay' | 'record' | 'env' | 'app' | 'integrations'>;

type FieldsOfModel<A> = A extends { provider: string } ? Omit<A, 'id'> : never;

/** The model of an agent in a test: rules of a script, a provider that answers at once, or the fields of a provider by its name. */
export type TestModel = ScriptInput | Provider | Partial<FieldsOfModel<AgentInput>>;

/** What a tool does in a test: its result, or a function of the arguments. */
export type ToolStub =
  | string
  | ((
      args: Record<string, unknown>,
      context: ToolContext,
      /** Name of the tool. */
      tool: string,
    ) => ReturnType<Tool['run']>);

/** The differences between the tested company and the one in operation. */
export interface Replacements {
  /** Models by agent id; `*`: all other agents. Default: the company's own. */
  models?: Readonly<Record<string, TestModel>> | undefined;
  /** Tools by name; `*`: all other tools. Descriptions, schemas and approvals stay. Default: the company's own. */
  tools?: Readonly<Record<string, ToolStub>> | undefined;
  /** Tools that the company lacks: their names, each with the ids of the agents that have it. Default: none. */
  standIns?: Readonly<Record<string, readonly string[]>> | undefined;
  /** What MCP servers offered, as recorded; no server is started then. Default: the company's servers are started. */
  servers?: Recording['servers'] | undefined;
}

/** Fields that an agent keeps when its model is replaced. The replacement brings the model's fields. */
const OF_AGENTS: Readonly<Record<keyof AgentBase, true>> = {
  id: true,
  aliases: true,
  name: true,
  role: true,
  description: true,
  capabilities: true,
  instructions: true,
  workspace: true,
  skills: true,
  tools: true,
  needsApproval: true,
  join: true,
  peers: true,
  framing: true,
  sees: true,
  whileBusy: true,
  reply: true,
  supervision: true,
  pubkey: true,
};

/** A company that was opened for a test, and its file. */
export interface OpenedCompany {
  definition: TroupeInput;
  /** Times do not depend on how long anything takes. */
  isScripted: boolean;
  /** Tools of another program are used in place of the company's. */
  isForeign: boolean;
  agentsFile: string | null;
}

/** Throws `config_invalid`, also if an agent or tool to replace does not exist. */
export async function prepareCompany(
  company: Company,
  { models = {}, tools = {}, standIns = {}, servers }: Replacements,
): Promise<OpenedCompany> {
  const { definition: written, agentsFile } = await readCompany(company);
  const definition = servers ? withRecordedServers(written, servers) : written;
  const modelOf = ({ id }: AgentInput) => models[id] ?? models['*'];
  const agents = definition.agents.map((agent) => withModel(withTools(agent, standIns), modelOf(agent)));
  refuseUnknown('agent', Object.keys(models), ['*', ...agents.map(({ id }) => id)]);
  const given = [...(definition.tools ?? []), ...Object.keys(standIns).map(standIn)];
  refuseUnknown('tool', Object.keys(tools), ['*', ...given.map(({ name }) => name)]);
  const replaced = given.map((tool) => withStub(tool, tools[tool.name] ?? tools['*']));
  const isForeign = Object.keys(standIns).length > 0;
  const limits = { ...(isForeign && FOREIGN_LIMITS), ...definition.limits };
  const brought = Object.values(models).flatMap((model) =>
    isProvider(model) ? [[adapterOf(model), model] as const] : [],
  );
  // A test whose tools are all replaced opens no database.
  const hasApp =
    given.some(({ name }) => (tools[name] ?? tools['*']) === undefined) ||
    agents.some(({ instructions }) => typeof instructions === 'function');
  const app = hasApp ? definition.app : undefined;
  const providers = { ...definition.providers, ...Object.fromEntries(brought) };
  const isScripted = definition.agents.every((agent, at) => {
    const model = modelOf(agent);
    return isProvider(model) || agents[at]?.provider === 'scripted';
  });
  return {
    definition: { ...definition, agents, tools: replaced, limits, providers, app },
    agentsFile,
    isScripted,
    isForeign,
  };
}

/** Window of a model that is the test's own provider: nothing is compacted, because no compaction is recorded. */
const WINDOW = 10_000_000;
/** Other programs allow longer turns. */
const FOREIGN_LIMITS = { maxSteps: 10_000 };

function adapterOf({ name }: Provider): string {
  return `test-${name}`;
}

function withTools(agent: AgentInput, standIns: NonNullable<Replacements['standIns']>): AgentInput {
  const more = Object.entries(standIns).flatMap(([name, agents]) =>
    agents.includes(agent.id) ? [name] : [],
  );
  return more.length === 0 ? agent : ({ ...agent, tools: [...(agent.tools ?? []), ...more] } as AgentInput);
}

function standIn(name: string): Tool {
  const schema = { type: 'object', additionalProperties: true };
  return defineTool({ name, description: 'Stands in for a tool of a recording.', schema, run: () => '' });
}

export async function readCompany(
  company: Company,
): Promise<Omit<OpenedCompany, 'isScripted' | 'isForeign'>> {
  if (typeof company === 'string' || company instanceof URL) {
    const agentsFile = typeof company === 'string' ? path.resolve(company) : fileURLToPath(company);
    return { definition: (await loadAgentsFile(agentsFile)) as TroupeInput, agentsFile };
  }
  if (!isList(company)) return { definition: company, agentsFile: null };
  const defaults = { respondWhenUnaddressed: company[0]?.id };
  return { definition: { agents: company, defaults }, agentsFile: null };
}

function isList(company: TroupeInput | readonly AgentInput[]): company is readonly AgentInput[] {
  return Array.isArray(company);
}

function withModel(agent: AgentInput, model: TestModel | undefined): AgentInput {
  if (model === undefined) return agent;
  const own = Object.fromEntries(Object.entries(agent).filter(([field]) => field in OF_AGENTS));
  const other = isProvider(model)
    ? { provider: 'custom', adapter: adapterOf(model), model: 'test', contextWindow: WINDOW }
    : 'rules' in model
      ? { provider: 'scripted', script: model }
      : model;
  // Problems of the result are reported when the troupe is opened.
  return { ...own, ...other } as AgentInput;
}

function withStub(tool: Tool, stub: ToolStub | undefined): Tool {
  if (stub === undefined) return tool;
  const run =
    typeof stub === 'string'
      ? () => stub
      : (args: Record<string, unknown>, context: ToolContext) => stub(args, context, tool.name);
  return { ...tool, needs: [], run: run as Tool['run'] };
}

function refuseUnknown(what: string, names: readonly string[], known: readonly string[]): void {
  for (const name of names) {
    if (known.includes(name)) continue;
    const nearest = nearestName(name, known);
    const hint = nearest === null ? `there are ${known.join(', ') || 'none'}` : `did you mean "${nearest}"?`;
    throw new TroupeError('config_invalid', `the company has no ${what} "${name}"; ${hint}`, {
      [what]: name,
    });
  }
}

type GivenProvider = NonNullable<TroupeInput['providers']>[string];

/** The model of a judge or of a simulated user: a provider with its fields, rules of a script, or a provider of your own. */
export type ModelChoice =
  | TestModel
  | {
      /** The provider. */
      use: GivenProvider;
      /** Name of the model. Default `default`. */
      model?: string;
      /** Tokens of prompt and answer together. Default: that of a known model, else 128,000. */
      contextWindow?: number;
    };

/** A company of this agent alone. Problems of its model are reported when the troupe is opened. */
export function companyOfOne(agent: Omit<AgentInput, 'provider'>, model: ModelChoice): TroupeInput {
  const { fields, providers } = modelFields(model);
  return {
    agents: [{ ...agent, ...fields } as AgentInput],
    ...(providers && { providers }),
    defaults: { respondWhenUnaddressed: agent.id },
  };
}

/** The fields of an agent with this model, and the provider that the company must bring for it. */
function modelFields(model: ModelChoice): {
  fields: Record<string, unknown>;
  providers?: TroupeInput['providers'];
} {
  if (isProvider(model)) return givenFields({ use: model });
  if ('use' in model) return givenFields(model);
  return { fields: 'rules' in model ? { provider: 'scripted', script: model } : { ...model } };
}

function givenFields({
  use,
  ...fields
}: Extract<ModelChoice, { use: GivenProvider }>): ReturnType<typeof modelFields> {
  return {
    fields: { provider: 'custom', adapter: 'given', ...fields },
    providers: { given: use },
  };
}

/** Checks the shape, because a program may pass any value. */
function isProvider(value: unknown): value is Provider {
  const { capabilities, stream } = Object(value) as { [field in keyof Provider]?: unknown };
  return typeof stream === 'function' && typeof capabilities === 'object' && capabilities !== null;
}
