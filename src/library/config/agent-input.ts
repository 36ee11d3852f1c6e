import * as z from 'zod';
import type { InstructionsFunction, ReplySchema } from '../../actors/actor/agent-runtime.ts';
import type { InputOf, ObjectInput } from '../../base/input-of.ts';
import { AgentId, BusyPolicy, JoinPolicy, notAField } from '../../events/index.ts';
import {
  type ModelSettings,
  type PROVIDER_SETTINGS,
  type ReachedModel,
  ProviderSettings,
  withLanguageModel,
} from '../../providers/settings.ts';
import { type DataSchema, firstProblems, readySchema } from '../../tools/schema.ts';
import type { Problem } from './problem.ts';

/** Whether an answer is sent back if the agent's list has open items, or if the answer is empty and the agent has `no_response`. */
export const SupervisionSetting = z.boolean();

export const AgentFields = z.object({
  /** Its name for messages and settings: 1 to 64 of `A-Z a-z 0-9 _ -`. */
  id: AgentId,
  /**
   * Former ids of the agent, at most 100. Messages to them reach it, and its earlier messages, tasks and questions stay
   * its own. Default: none.
   */
  aliases: z.array(AgentId).max(100).optional(),
  /** Name for people, at most 200 characters. Default: the id. */
  name: z.string().min(1).max(200).optional(),
  /** Its role among the other agents, shown in rosters and prompts. Default `peer`. */
  role: z.enum(['manager', 'worker', 'peer']).default('peer'),
  /** One line for the other agents, shown in their rosters; at most 300 characters. Default: none. */
  description: z.string().max(300).default(''),
  /** Skills, for routing by capability. Default: none. */
  capabilities: z.array(z.string().min(1).max(100)).max(100).optional(),
  /**
   * Instructions: a text, or a function that writes it for a conversation. The function is called when the agent's
   * baseline is made; its text stays until the next baseline. Default: none.
   */
  instructions: z
    .union(
      [z.string(), z.custom<InstructionsFunction>((value) => typeof value === 'function')],
      'give a text or a function',
    )
    .default(''),
  /** Directory with an AGENTS.md, IDENTITY.md or SOUL.md of its own: see `workspace` of the troupe. Default: none. */
  workspace: z.string().min(1).optional(),
  /** Directories of skills of its own: see `skills` of the troupe. Default: none. */
  skills: z.array(z.string().min(1)).optional(),
  /**
   * Names of the tools it may call: built-in ones such as `handoff`, those of `tools` of the troupe, and `NAME/tool` or
   * `NAME/*` of an MCP server. Default: none.
   */
  tools: z.array(z.string()).default([]),
  /**
   * Tools of the agent that wait for a person's approval before each call: names, `SERVER/tool` or `SERVER/*`. A tool
   * that needs approval by its own definition keeps its deciders and its deadline. Default: none.
   */
  needsApproval: z.array(z.string()).optional(),
  /**
   * What the agent sees of the conversation before it joined: everything (`full`), a summary and the newest events
   * (`summary`), or only the message that woke it (`fresh`). Default `full`.
   */
  join: JoinPolicy.default('full'),
  /**
   * Role of the messages of other agents that a turn does not answer: `user`, or `system` if the provider accepts such
   * messages between others (`capabilities.interleavedSystem`). Models give `system` messages more weight. Default
   * `user`.
   */
  peers: z.enum(['user', 'system']).default('user'),
  /**
   * How prompts show who speaks: by short marks with numbers that no author can guess (`marked`), or by lines such as
   * `From Ana:` (`plain`), for small models that copy marks into their answers. Default `marked`.
   */
  framing: z.enum(['marked', 'plain']).default('marked'),
  /**
   * What the agent sees of other agents' work: their messages (`words`), or also the results of their tools and tasks
   * and which calls were approved (`results`), from the time of the setting on. With `results` it gets the tool
   * `read_artifact`. Default `words`.
   */
  sees: z.enum(['words', 'results']).default('words'),
  /**
   * Treatment of a message while the agent has a turn under way: it waits for the next turn (`queue`), joins the next step
   * (`steer`), aborts the turn (`interrupt`), or is refused (`reject`). A message may override it. Default `queue`.
   */
  whileBusy: BusyPolicy.default('queue'),
  /** Schema of the replies, as a zod schema or a JSON schema. Replies are then JSON data. Default: plain text. */
  reply: z.custom<ReplyInput>().superRefine(refineReply).optional(),
  /** Overrides the troupe's `supervision`. */
  supervision: SupervisionSetting.optional(),
  /** A second address of the agent, and its identity on Nostr: 64 lower-case hex digits. Default: none. */
  pubkey: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'a pubkey is 64 lower-case hex digits')
    .optional(),
});

function refineReply(reply: unknown, context: z.RefinementCtx): void {
  const message = replyProblem(reply);
  if (message !== null) context.addIssue({ code: 'custom', message });
}

/** Fields of every agent, whatever its model. */
export interface AgentBase extends InputOf<typeof AgentFields> {}

/** Fields of every model. Keys stay in the environment; only the names of their variables are written. */
export interface ModelInput extends InputOf<typeof ModelSettings> {}

/** The fields of models that are reached over HTTP or that the program brings. */
interface ReachedInput extends ObjectInput<typeof ReachedModel> {}

/** The fields that only one provider has. Compilers then read the shared fields once. */
type Own<Provider extends keyof typeof PROVIDER_SETTINGS, Shared> = ObjectInput<
  Omit<(typeof PROVIDER_SETTINGS)[Provider]['shape'], keyof Shared>
>;

/** Answers by rules, without a model: for tests and first steps. */
export interface ScriptedAgent extends AgentBase, ModelInput, Own<'scripted', ModelInput> {}

/** A language model of a package of the AI SDK. */
interface AiSdkAgent
  extends AgentBase, Omit<ReachedInput, 'model'>, Own<'ai-sdk', Omit<ReachedInput, 'model'>> {}

/** A model that the program brings with `defineProvider`. */
export interface CustomProviderAgent extends AgentBase, ReachedInput, Own<'custom', ReachedInput> {}

/** Any server with a chat completions API. */
export interface CompatibleAgent extends AgentBase, ReachedInput, Own<'openai-compatible', ReachedInput> {}

/** A model of Anthropic. */
export interface AnthropicAgent extends AgentBase, ModelInput, Own<'anthropic', ModelInput> {}

/** A model of OpenAI, with its responses API. */
export interface OpenAiAgent extends AgentBase, ReachedInput, Own<'openai', ReachedInput> {}

/** Claude Code, which runs on this machine. */
export interface ClaudeCodeAgent extends AgentBase, ModelInput, Own<'claude-code', ModelInput> {}

/** Codex, which runs on this machine. */
export interface CodexAgent extends AgentBase, ModelInput, Own<'codex', ModelInput> {}

/** An agent elsewhere, reached with A2A 1.0. */
export interface A2aAgent extends AgentBase, Own<'a2a', ModelInput> {}

/** Agents by their provider. */
export interface AgentByProvider {
  scripted: ScriptedAgent;
  'ai-sdk': AiSdkAgent;
  custom: CustomProviderAgent;
  'openai-compatible': CompatibleAgent;
  anthropic: AnthropicAgent;
  openai: OpenAiAgent;
  'claude-code': ClaudeCodeAgent;
  codex: CodexAgent;
  a2a: A2aAgent;
}
/** An agent of a definition. `provider` says which fields it has. Fields with a default may be left out. */
export type AgentInput = AgentByProvider[keyof AgentByProvider];
/** Who runs a model. */
export type ProviderName = AgentInput['provider'];

/** Schema of an agent's replies: of zod, valibot, arktype or any library of Standard Schema, or a JSON schema (draft 2020-12). */
type ReplyInput = DataSchema;

/** Most problems reported per reply: a reply may be wrong everywhere, and the report is stored. */
const MAX_PROBLEMS = 3;

/** The JSON schema for vendors, and the check of replies. Throws if `reply` cannot be converted to both. */
export function replySchema(reply: ReplyInput): ReplySchema {
  const { json: schema, check } = readySchema(reply, 'output');
  return {
    schema,
    async check(value) {
      const checked = await check(value);
      if ('value' in checked) return { data: checked.value };
      return { problem: firstProblems(checked.problems, MAX_PROBLEMS).join('; ') };
    },
  };
}

/** Why a value cannot be a reply schema. Null: it can. */
function replyProblem(reply: unknown): string | null {
  try {
    replySchema(reply as ReplyInput);
    return null;
  } catch (error) {
    return `the schema cannot be used: ${error instanceof Error ? error.message : String(error)}`;
  }
}

// Loose at run time, because fields depend on the provider: `unknownFields` refuses the others. Strict as a type.
const LooseAgentFields = AgentFields.loose() as unknown as typeof AgentFields;
export type AgentDefinition = z.infer<typeof AgentFields> & ProviderSettings;
export const AgentDefinition = z.preprocess(
  asParsed,
  z.intersection(LooseAgentFields, ProviderSettings),
) as unknown as z.ZodType<AgentDefinition, AgentInput>;

/** Without fields that are undefined, which the intersection would report as conflicts. */
function asParsed(agent: unknown): unknown {
  if (typeof agent !== 'object' || agent === null || Array.isArray(agent)) return agent;
  return withLanguageModel(
    Object.fromEntries(Object.entries(agent).filter(([, value]) => value !== undefined)),
  );
}

/** Providers by name, as an agents file writes them. */
export const PROVIDER_NAMES: readonly string[] = ProviderSettings.options.map(
  ({ shape }) => shape.provider.value,
);

/** The unknown fields of a list of agents, however invalid they are otherwise, each with the nearest known one. */
export function* unknownFields(agents: unknown, list: 'agents' | 'templates'): Generator<Problem> {
  for (const [index, agent] of Array.isArray(agents) ? agents.entries() : []) {
    if (typeof agent !== 'object' || agent === null) continue;
    const { provider } = agent as { provider?: unknown };
    const settings = ProviderSettings.options.find(({ shape }) => shape.provider.value === provider);
    // Without its provider it is not known which fields an agent has.
    if (!settings) continue;
    const known = [...Object.keys(AgentFields.shape), ...Object.keys(settings.shape)];
    for (const field of Object.keys(agent)) {
      if (!known.includes(field)) yield { path: [list, index, field], message: notAField(field, known) };
    }
  }
}
