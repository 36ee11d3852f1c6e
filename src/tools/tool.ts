import * as z from 'zod';
import {
  type ActorAddress,
  AgentId,
  type Author,
  type ConversationId,
  HandoffDraft,
  Join,
  type TenantId,
  type ToldTo,
  TodosBody,
  type ToolProgress,
  type ToolSpec,
  type TurnId,
  problemsIn,
  problemText,
  tryParse,
} from '../events/index.ts';
import {
  type Checked,
  type DataOf,
  type DataSchema,
  isStandard,
  type JsonSchema,
  readySchema,
  type ReadySchema,
} from './schema.ts';

/** What a tool knows of its call. `App` and `ForTools`: types of what the application provides; name them where a tool uses them. */
export interface ToolContext<App = unknown, ForTools = unknown> {
  /** The agent that calls, with its conversation and tenant. */
  address: ActorAddress;
  /** Id of the tenant. */
  tenant: TenantId;
  /** Id of the conversation. */
  conversation: ConversationId;
  /** The agent that calls. */
  agent: AgentId;
  /** Id of the turn. */
  turn: TurnId;
  /**
   * Who asked: the author of the newest message for which the call is made. Handoffs, tasks, answers and decisions lead back
   * to the message that began them, also from a thread.
   */
  author: Author;
  /** The authors of all such messages, each once, newest last: a turn may answer several people. */
  authors: readonly Author[];
  /**
   * What the application provides to tools in the process that runs the call: `app` of the options of `createTroupe`, else of
   * the definition.
   */
  app: App;
  /** `forTools` of the message of `author`. Null if the message had none, or another process got it and it was not stored. */
  forTools: ForTools | null;
  /** The answers of people to questions of this agent, after which this turn continues. */
  answers: readonly ToolAnswer[];
  /** Idempotency key of this call: it stays the same after a crash and a retry. */
  effect: string;
  /** Aborts when the turn is stopped, and at the timeout. */
  signal: AbortSignal;
  /** Outputs of which prompts show only a part. */
  artifacts: { read(id: string): Promise<string | null> };
  /**
   * Tells watchers how far the call has come: a text, or units done, of `total` if that is known. It is never stored, and the
   * model does not see it. May be called often: watchers see only the last report of each tenth of a second.
   */
  progress: (report: string | ToolProgress) => void;
}

/** The end of a question to people. */
export interface ToolAnswer {
  /** The question, word for word. */
  question: string;
  /** How it ended. */
  outcome: 'answered' | 'expired' | 'cancelled';
  /** The answer. */
  content: string;
  /** Who ended it. */
  author: Author;
}

/**
 * What a tool may return: a text, shown to the model unchanged; any other JSON value, shown as JSON; or `{ text }` and `{
 * text, request }`, where `request` asks something of the turn. An object with further fields counts as a JSON value.
 */
export type ToolReturn = string | ToolText | object | number | boolean | null | undefined | void;

export interface ToolText {
  /** What the model reads. */
  text: string;
  /** What the tool asks of the turn. */
  request?: ToolRequest;
}

/** A tool, made with `defineTool`. `App`: what it needs of the application. */
export interface Tool<Name extends string = string, App = unknown> {
  /** Name by which agents call it. */
  readonly name: Name;
  /** Description for models. */
  readonly description: string;
  /** JSON schema of the arguments, in the form in which models see it. */
  readonly parameters: ToolSpec['parameters'];
  /** Checks arguments, and returns them in the form that `run` takes. */
  readonly check: (args: unknown) => Promise<Checked>;
  /** Safe to send twice with the same effect id. */
  readonly idempotent: boolean;
  /** The tool bounds its own output. */
  readonly bounded: boolean;
  /** Whether a person must approve a call before it runs; a function decides by the arguments. */
  readonly needsApproval?: Approval;
  /** Time limit of a call, ms. */
  readonly timeoutMs: number;
  /** Progress reports restart the time limit, up to this many milliseconds in all. Default: they do not. */
  readonly longestMs?: number;
  /** Size limit of an output in a prompt. Default: the troupe's limits. */
  readonly previewBytes?: number;
  /** Which agents are told its results besides the one that calls it: all others, or those that see results. Default: none. */
  readonly told?: ToldTo;
  /** It passes its arguments on as JSON: integers beyond 2^53 arrive as `ExactInteger`. Other tools refuse them. */
  readonly takesExact?: boolean;
  /** Why calls may fail at present, in a few words for the model. Null if no reason is known. */
  readonly trouble?: () => string | null;
  /** Names of the parts of `app` that it needs. A troupe whose `app` lacks one is refused at the start. */
  readonly needs?: readonly string[];
  /** Called after the arguments were checked. */
  run(args: never, context: ToolContext<App>): Promise<ToolReturn> | ToolReturn;
}

/** `by`: ids of the people who may decide; default: everyone. The call is denied after `deadlineMs`. */
export type Approval<Args = never> =
  | boolean
  | ((args: Args) => boolean)
  | { when?: (args: Args) => boolean; by?: readonly string[]; deadlineMs?: number };

/** The argument of `defineTool`. If `run` declares a type of `app`, `needs` names the parts of it that the tool needs. */
export interface ToolDefinition<S extends DataSchema, Name extends string = string, App = unknown> {
  /** 1 to 64 of `A-Z a-z 0-9 _ -`, beginning with a letter. */
  name: Name;
  /** What models read about it: what it does, and when to call it. */
  description: string;
  /** Schema of the arguments: from zod, valibot, arktype or another library that follows Standard Schema, or a JSON schema. */
  schema: S;
  /** JSON schema that models see instead of the one derived from `schema`. */
  parameters?: ToolSpec['parameters'];
  /** Called with checked arguments. An error that it throws is a failed result, which the model reads. */
  run(args: DataOf<S>, context: ToolContext<App>): Promise<ToolReturn> | ToolReturn;
  /**
   * Safe to send twice with the same effect id after a crash. If it is not, such a call counts as `lost`, and the model is
   * told so. Default false.
   */
  idempotent?: boolean;
  /** The tool bounds its own output, which is then always shown whole, never as a preview. Default false. */
  bounded?: boolean;
  /** Whether a person must approve a call before it runs; a function decides by the arguments. */
  needsApproval?: Approval<DataOf<S>>;
  /** Time limit of a call, including the check of its arguments. Default 60,000 ms. */
  timeoutMs?: number;
  /** Bytes of an output in a prompt; the rest becomes an artifact. Default 8,192. */
  previewBytes?: number;
  /** Whether the other agents of the conversation are told its results, and the decisions about its calls. Default false. */
  shared?: boolean;
}

/** A tool whose `run` declares a type of `app` also names the parts of it that it needs, such as `['db']`. */
type ToolNeeds<App> = unknown extends App
  ? {
      /** Names of the parts of `app` that it needs. A troupe whose `app` lacks one is refused at the start. Default: none. */
      needs?: readonly string[];
    }
  : {
      /** Names of the parts of `app` that it needs. A troupe whose `app` lacks one is refused at the start. */
      needs: readonly (keyof App & string)[];
    };

/**
 * Defines a tool for agents.
 *
 *     const add = defineTool({
 *       name: 'add', description: 'Adds two numbers.',
 *       schema: z.object({ a: z.number(), b: z.number() }),
 *       run: ({ a, b }) => String(a + b),
 *     });
 *
 * Throws a `TypeError` that names every wrong field.
 */
export function defineTool<const S extends DataSchema, const Name extends string = string, App = unknown>(
  definition: ToolDefinition<S, Name, App> & ToolNeeds<NoInfer<App>>,
): Tool<Name, App> {
  checkDefinition(definition);
  const {
    idempotent = false,
    bounded = false,
    timeoutMs = 60_000,
    shared = false,
    schema,
    parameters,
    ...rest
  }: ToolDefinition<S, Name, App> = definition;
  const { json, check } = argumentSchema(rest.name, schema, parameters);
  const told = shared ? { told: 'all' as const } : {};
  return { ...rest, ...told, parameters: json, check, idempotent, bounded, timeoutMs };
}

function argumentSchema(tool: string, schema: DataSchema, shown: JsonSchema | undefined): ReadySchema {
  const refused = (why: string, cause?: unknown) =>
    new TypeError(`the schema of tool ${JSON.stringify(tool)}: ${why}`, { cause });
  let ready: ReadySchema;
  try {
    ready = readySchema(schema, 'input', shown);
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw refused(isStandard(schema) && !shown ? `${why}; ${OWN_PARAMETERS}` : why, thrown);
  }
  const { type } = ready.json;
  // A schema of alternatives has no type of its own.
  if (type === 'object' || (type === undefined && isStandard(schema))) return ready;
  throw refused('arguments are an object: give z.object({ … }), or a JSON schema of the type "object"');
}

const OWN_PARAMETERS = 'or show models a JSON schema of your own: add "parameters" to the tool';

export function toolSpec({ name, description, parameters }: Tool): ToolSpec {
  return { name, description, parameters };
}

/** When the tasks of a turn wake their owner, and when they expire. */
const waiting = {
  /** False: the turn continues meanwhile. In both cases the results wake the agent. */
  wait: z.boolean(),
  join: Join,
  /** Milliseconds from now. Default: the troupe's limit. */
  deadlineMs: z.number().positive().optional(),
};

/**
 * What a tool may ask of the turn besides returning text. The engine decides whether it is allowed. It takes effect when the
 * turn commits, and not at all if the turn fails.
 */
export const ToolRequest = z.discriminatedUnion('kind', [
  z
    .strictObject({
      kind: z.literal('handoff'),
      to: AgentId,
      summary: HandoffDraft,
      /** How the missing goal of a summary is filled in. Absent: the goal is required. */
      fill: z.enum(['extract', 'summarise']).optional(),
    })
    .refine(({ summary, fill }) => fill !== undefined || summary.goal.trim() !== '', {
      path: ['summary', 'goal'],
      message: 'a handoff needs a goal',
    }),
  z.strictObject({
    kind: z.literal('delegate'),
    how: z.enum(['delegate', 'ask']),
    to: z.string(),
    task: z.string(),
    /** Names of attachments of the conversation. Default: those of the message that began the work. */
    attachments: z.array(z.string()).optional(),
    /** Allows an assignee that is itself waiting for this agent. */
    force: z.boolean(),
    ...waiting,
  }),
  z.strictObject({
    kind: z.literal('followUp'),
    task: z.string(),
    text: z.string(),
    /** Names of attachments of the conversation. Default: none. */
    attachments: z.array(z.string()).optional(),
    ...waiting,
  }),
  z.strictObject({
    kind: z.literal('question'),
    text: z.string(),
    by: z.array(z.string()),
    choices: z.array(z.string()).optional(),
    ...waiting,
  }),
  z.strictObject({ kind: z.literal('cancelTask'), task: z.string(), reason: z.string() }),
  /** `at`: milliseconds since the epoch. `inMs`: from now. One of the two is given. */
  z.strictObject({
    kind: z.literal('remind'),
    text: z.string(),
    at: z.number().optional(),
    inMs: z.number().positive().optional(),
  }),
  TodosBody.extend({ kind: z.literal('todos') }),
  /** Ends the turn without a text, on purpose. */
  z.strictObject({ kind: z.literal('noResponse'), reason: z.string() }),
]);
export type ToolRequest = z.infer<typeof ToolRequest>;
export type RequestOf<K extends ToolRequest['kind']> = Extract<ToolRequest, { kind: K }>;

const TOOL_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
const AFunction = z.custom<() => unknown>((value) => typeof value === 'function', 'give a function');
const Ids = z.array(z.string());

/** `schema` is checked where it is read, with messages of its own. */
const Definition = z.strictObject({
  name: z
    .string()
    .regex(TOOL_NAME, 'is 1 to 64 letters, digits, _ and -, and begins with a letter: such as "look_up"'),
  description: z.string(),
  schema: z.unknown(),
  parameters: z.looseObject({}).optional(),
  needs: Ids.optional(),
  run: AFunction,
  idempotent: z.boolean().optional(),
  bounded: z.boolean().optional(),
  needsApproval: z
    .union([
      z.boolean(),
      AFunction,
      z.strictObject({ when: AFunction.optional(), by: Ids.optional(), deadlineMs: z.number().optional() }),
    ])
    .optional(),
  timeoutMs: z.number().positive().optional(),
  previewBytes: z.number().positive().optional(),
  shared: z.boolean().optional(),
});

/** Throws a `TypeError` that names the tool, every wrong field and what to give. */
function checkDefinition(definition: unknown): void {
  const parsed = tryParse(Definition, definition);
  if (parsed.success) return;
  const { name } = Object(definition) as { name?: unknown };
  const which = typeof name === 'string' ? `the tool ${JSON.stringify(name)}` : 'a tool';
  throw new TypeError(`${which}: ${problemText(problemsIn(parsed.error), 'it')}`);
}
