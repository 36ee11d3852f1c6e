import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AgentInput } from '../config/agent-input.ts';
import type { TroupeInput } from '../config/agents-file.ts';
import { loadAgentsFile } from '../config/load-agents-file.ts';
import { TroupeError } from '../errors.ts';
import { nearestName } from '../events/index.ts';
import type { Tool, ToolContext, ToolReturn } from '../tools/tool.ts';
import { SWEEP_MS } from './eval-clock.ts';

/**
 * The company under test: a definition, the path or URL of an agents file, or agents alone, of whom the first answers what
 * names nobody.
 */
export type Company = TroupeInput | readonly AgentInput[] | string | URL;

type FieldsOfModel<A> = A extends { provider: string } ? Omit<A, 'id'> : never;

/** The model of an agent in a test: rules of a script, or the provider with its fields. */
export type TestModel = { rules: readonly unknown[] } | Partial<FieldsOfModel<AgentInput>>;

/** What a tool does in a test: its result, or a function of the arguments. */
export type ToolStub =
  | string
  | ((args: Record<string, unknown>, context: ToolContext) => ToolReturn | Promise<ToolReturn>);

/** What is different from the company in operation. */
export interface Replacements {
  /** Models by id of the agent; `*`: of all others. Default: those of the company. */
  models?: Readonly<Record<string, TestModel>> | undefined;
  /** Tools by name. Their descriptions, schemas and approvals stay. Default: those of the company. */
  tools?: Readonly<Record<string, ToolStub>> | undefined;
}

/** Fields that say who runs the model of an agent, and how: a replacement brings its own. */
const OF_AGENTS: ReadonlySet<string> = new Set([
  'id',
  'name',
  'role',
  'description',
  'capabilities',
  'instructions',
  'workspace',
  'skills',
  'tools',
  'needsApproval',
  'join',
  'peers',
  'whileBusy',
  'retry',
  'reply',
  'supervision',
  'pubkey',
]);

/** A company as it is opened for a test, and the file it is from. */
export interface OpenedCompany {
  definition: TroupeInput;
  agentsFile: string | null;
}

/** Throws `config_invalid`: also for a replacement of an agent or a tool that there is not. */
export async function prepareCompany(
  company: Company,
  { models = {}, tools = {} }: Replacements,
): Promise<OpenedCompany> {
  const { definition, agentsFile } = await readCompany(company);
  const agents = definition.agents.map((agent) => withModel(agent, models[agent.id] ?? models['*']));
  refuseUnknown('agent', Object.keys(models), ['*', ...agents.map(({ id }) => id)]);
  const given = definition.tools ?? [];
  refuseUnknown(
    'tool',
    Object.keys(tools),
    given.map(({ name }) => name),
  );
  const replaced = given.map((tool) => withStub(tool, tools[tool.name]));
  const limits = { ...definition.limits, sweepMs: SWEEP_MS };
  return { definition: { ...definition, agents, tools: replaced, limits }, agentsFile };
}

/** Without models, times do not depend on how long anything takes. */
export function isScripted({ agents }: TroupeInput): boolean {
  return agents.every(({ provider }) => provider === 'scripted');
}

async function readCompany(company: Company): Promise<OpenedCompany> {
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
  const own = Object.fromEntries(Object.entries(agent).filter(([field]) => OF_AGENTS.has(field)));
  const other = 'rules' in model ? { provider: 'scripted', script: model } : model;
  // What is wrong with it is found when the troupe is opened.
  return { ...own, ...other } as AgentInput;
}

function withStub(tool: Tool, stub: ToolStub | undefined): Tool {
  if (stub === undefined) return tool;
  const run = typeof stub === 'string' ? () => stub : stub;
  return { ...tool, run: run as Tool['run'] };
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
