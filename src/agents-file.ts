import { readFile, stat } from 'node:fs/promises';
import { dirname, extname, isAbsolute, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import * as z from 'zod';
import { Fragment } from './context/index.ts';
import { ContextSettings } from './context-settings.ts';
import { TroupeError } from './errors.ts';
import { AgentId, nearestName } from './events/index.ts';
import { fragmentProblems } from './fragments.ts';
import { ProviderSettings } from './providers/settings.ts';
import { replyProblem, type ReplyInput } from './reply-schema.ts';
import { grantProblems, parseGrant } from './tools/mcp/grants.ts';
import { McpServers } from './tools/mcp/settings.ts';
import type { Tool } from './tools/tool.ts';

/** Tools that come with Troupe. */
export const BUILTIN_TOOLS = ['handoff', 'read_artifact'] as const;
/** Names kept for coordination: accepted in files, not offered to models yet, and said so in a warning. */
export const RESERVED_TOOLS = ['delegate', 'ask'] as const;

const AgentFields = z.object({
  id: AgentId,
  name: z.string().min(1).max(200).optional(),
  role: z.enum(['manager', 'worker', 'peer']).default('peer'),
  /** One line for colleagues, shown in every agent's roster. */
  description: z.string().max(300).default(''),
  instructions: z.string().default(''),
  tools: z.array(z.string()).default([]),
  /** What a newcomer sees of what came before: all of it, a summary and the newest, or the trigger only. */
  join: z.enum(['full', 'summary', 'fresh']).default('full'),
  /** What its replies must be, as a zod schema or a JSON schema: they come as data. Default: words. */
  reply: z.custom<ReplyInput>().superRefine(refineReply).optional(),
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
    maxHops: z.int().min(1).optional(),
    previewBytes: z.int().min(256).optional(),
    /** Turns at once of one tenant, over all processes. */
    turnsPerTenant: z.int().min(1).optional(),
    /** By provider name. */
    providers: z.record(z.string(), ProviderCaps).optional(),
  })
  .default({});

export const TroupeDefinition = z.strictObject({
  agents: z.array(AgentDefinition).min(1, 'a troupe needs at least one agent'),
  tools: z.array(z.custom<Tool>((value) => isTool(value), 'a tool is made with defineTool')).default([]),
  /** Servers whose tools agents are granted as `NAME/tool` or `NAME/*`. */
  mcpServers: McpServers.optional(),
  defaults: z.strictObject({ respondWhenUnaddressed: AgentId.optional() }).default({}),
  limits: Limits,
  context: ContextSettings.prefault({}),
  /** What the application adds to prompts. A JSON file may hold static ones with fixed texts. */
  fragments: z.array(Fragment).optional(),
  /** What becomes of a hand-over whose goal the agent leaves out: refused, taken from the log, or asked of a model. */
  handoffs: z.enum(['agent', 'extract', 'summarise']).optional(),
});
export type TroupeDefinition = z.infer<typeof TroupeDefinition>;
export interface TroupeInput {
  agents: AgentInput[];
  tools?: Tool[];
  /** Where tools from outside come from; agents are granted them as `NAME/tool` or `NAME/*`. */
  mcpServers?: z.input<typeof McpServers> | undefined;
  defaults?: { respondWhenUnaddressed?: string | undefined };
  limits?: z.input<typeof Limits>;
  /** Budgets of prompts, and how they are kept. */
  context?: z.input<typeof ContextSettings> | undefined;
  fragments?: z.input<typeof Fragment>[] | undefined;
  /** Default `extract`. */
  handoffs?: 'agent' | 'extract' | 'summarise' | undefined;
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
/** What can be read of a definition that may be broken anywhere: one problem must not hide the others. */
const Sketch = z
  .object({
    agents: z
      .array(z.object({ id: Text, pubkey: Text, tools: z.array(Text).catch([]) }).catch({ tools: [] }))
      .catch([]),
    tools: z.array(z.object({ name: Text }).catch({})).catch([]),
    mcpServers: z
      .record(z.string(), z.object({ tools: z.array(Text).optional().catch(undefined) }).catch({}))
      .catch({}),
    defaults: z.object({ respondWhenUnaddressed: Text }).catch({}),
    context: z.object({ summariser: Text }).catch({}),
    fragments: z
      .array(z.object({ name: Text, agents: z.array(Text).catch([]) }).catch({ agents: [] }))
      .catch([]),
  })
  .catch({ agents: [], tools: [], mcpServers: {}, defaults: {}, fragments: [], context: {} });

/** What does not fit together. What is missing or no text is told by the schema. */
function* crossProblems({
  agents,
  tools,
  mcpServers,
  defaults,
  fragments,
  context,
}: z.infer<typeof Sketch>): Generator<Problem> {
  const known = new Set<string>([...BUILTIN_TOOLS, ...RESERVED_TOOLS]);
  for (const server of Object.keys(mcpServers)) known.add(`${server}/*`);
  const own = tools.map(({ name }) => name);
  for (const name of own) if (name !== undefined) known.add(name);
  const ids = agents.map(({ id }) => id);
  const keys = agents.map(({ pubkey }) => pubkey);
  for (const [index, { id, tools: names, pubkey }] of agents.entries()) {
    if (id !== undefined && ids.indexOf(id) !== index) {
      yield { path: ['agents', index, 'id'], message: `"${id}" is used twice` };
    }
    if (pubkey && keys.indexOf(pubkey) !== index) {
      yield { path: ['agents', index, 'pubkey'], message: 'another agent has this pubkey' };
    }
    for (const [at, name] of names.entries()) {
      if (name === undefined || known.has(name) || parseGrant(name)) continue;
      yield {
        path: ['agents', index, 'tools', at],
        message: `there is no tool "${name}"; known: ${[...known].join(', ')}`,
      };
    }
  }
  for (const [index, name] of own.entries()) {
    if (name === undefined) continue;
    const path = ['tools', index, 'name'];
    if (own.indexOf(name) !== index) yield { path, message: `"${name}" is used twice` };
    const taken = [...BUILTIN_TOOLS, ...RESERVED_TOOLS].some((builtin) => builtin === name);
    if (taken) yield { path, message: `"${name}" is the name of a tool that comes with Troupe` };
  }
  yield* grantProblems({ agents, servers: mcpServers });
  yield* fragmentProblems(fragments, ids);
  const { summariser } = context;
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

function isTool(value: unknown): value is Tool {
  return (
    typeof value === 'object' && value !== null && 'name' in value && 'run' in value && 'schema' in value
  );
}

/** Fields of agents that mean nothing to this version, with what may have been meant; for warnings. */
export function unknownFields(agents: readonly AgentDefinition[]): string[] {
  return agents.flatMap((agent, index) => {
    const settings = ProviderSettings.options.find(({ shape }) => shape.provider.value === agent.provider);
    const known = [...Object.keys(AgentFields.shape), ...Object.keys(settings?.shape ?? {})];
    const unknown = Object.keys(agent).filter((field) => !known.includes(field));
    return unknown.map((field) => {
      const nearest = nearestName(field, known);
      return `agents[${index}].${field} is not a field and is ignored${nearest ? `; did you mean "${nearest}"?` : ''}`;
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

/** Loads `agents.ts`, `.js`, `.mjs` or `.json`. Paths in it are relative to the file. Throws `config_invalid`. */
export async function loadAgentsFile(path: string): Promise<TroupeDefinition> {
  const full = resolve(path);
  const definition = parseTroupe(await readDefinition(full), path);
  const base = dirname(full);
  for (const agent of definition.agents) {
    if (agent.provider === 'scripted' && typeof agent.script === 'string' && !isAbsolute(agent.script)) {
      agent.script = resolve(base, agent.script);
    }
  }
  for (const server of Object.values(definition.mcpServers ?? {})) {
    if ('command' in server) server.cwd = resolve(base, server.cwd ?? '');
  }
  return definition;
}

async function readDefinition(path: string): Promise<unknown> {
  try {
    if (!(await stat(path)).isFile()) throw new Error('it is not a file');
    if (extname(path) === '.json') return JSON.parse(await readFile(path, 'utf8')) as unknown;
    const module = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
    const definition = module['default'] ?? module['troupe'];
    if (definition === undefined) throw new Error('it exports neither "troupe" nor a default');
    return definition;
  } catch (error) {
    const where = `${path}${lineOf(error, path)}`;
    throw new TroupeError(
      'config_invalid',
      `cannot load ${where}: ${whyOf(error)}`,
      { path },
      { cause: error },
    );
  }
}

function whyOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isAbsent = (error as NodeJS.ErrnoException).syscall === 'stat';
  return isAbsent ? 'there is no such file' : error.message;
}

/** `:3` for a syntax error in line 3, which Node tells at the head of the stack only. */
function lineOf(error: unknown, path: string): string {
  const [head = ''] = error instanceof SyntaxError ? (error.stack ?? '').split('\n') : [];
  return head.startsWith(`${path}:`) ? head.slice(path.length) : '';
}
