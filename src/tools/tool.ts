import * as z from 'zod';
import { type ActorAddress, AgentId, HandoffDraft, Join, TodosBody, type ToolSpec } from '../events/index.ts';

/**
 * A tool: a name, a schema, and what to do. `idempotent` tools may be sent again after a crash with the same effect
 * id; others are marked `lost` and the model is told.
 */
export interface ToolContext {
  address: ActorAddress;
  /** Idempotency key of this very call: the same after a crash and a retry. */
  effect: string;
  signal: AbortSignal;
  artifacts: { read(id: string): Promise<string | null> };
}

export type ToolReturn = string | { text: string; request?: ToolRequest };

export interface Tool {
  readonly name: string;
  readonly description: string;
  readonly schema: z.ZodType;
  /** What models are told in place of `schema`: the JSON schema of a tool that checks its arguments itself. */
  readonly parameters?: ToolSpec['parameters'];
  readonly idempotent: boolean;
  readonly bounded: boolean;
  /** Whether a person has to agree to a call before it runs; with a function, to which. */
  readonly needsApproval?: Approval;
  /** Milliseconds. */
  readonly timeoutMs: number;
  /** Of an output in a prompt. Default: what the troupe's limits say. */
  readonly previewBytes?: number;
  readonly run: (args: never, context: ToolContext) => Promise<ToolReturn> | ToolReturn;
}

/** `by`: ids of those who may decide; without it every person. `deadlineMs`: after it the call is denied. */
export type Approval =
  | boolean
  | ((args: never) => boolean)
  | { when?: (args: never) => boolean; by?: readonly string[]; deadlineMs?: number };

export interface ToolDefinition<S extends z.ZodType> {
  name: string;
  description: string;
  schema: S;
  /** A JSON schema to tell models in place of `schema`. */
  parameters?: ToolSpec['parameters'];
  run(args: z.output<S>, context: ToolContext): Promise<ToolReturn> | ToolReturn;
  /** Safe to send twice with the same effect id. Default false. */
  idempotent?: boolean;
  /** Limits its own output, which is then shown whole and never as a preview. Default false. */
  bounded?: boolean;
  /** A person has to agree to each call before it runs, or to those that a function picks by their arguments. */
  needsApproval?:
    | boolean
    | ((args: z.output<S>) => boolean)
    | { when?: (args: z.output<S>) => boolean; by?: readonly string[]; deadlineMs?: number };
  /** Default 60,000 ms. */
  timeoutMs?: number;
  /** Bytes of an output in a prompt; the rest is an artifact. Default: `limits.previewBytes`. */
  previewBytes?: number;
}

const TOOL_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

/**
 * Defines a tool for agents.
 *
 *     const add = defineTool({
 *       name: 'add', description: 'Adds two numbers.',
 *       schema: z.object({ a: z.number(), b: z.number() }),
 *       run: ({ a, b }) => String(a + b),
 *     });
 */
export function defineTool<S extends z.ZodType>(definition: ToolDefinition<S>): Tool {
  const { idempotent = false, bounded = false, timeoutMs = 60_000, ...rest } = definition;
  if (!TOOL_NAME.test(rest.name)) {
    throw new TypeError(
      `tool name ${JSON.stringify(rest.name)} must match ${TOOL_NAME}: letters, digits, _ and -`,
    );
  }
  return { ...rest, idempotent, bounded, timeoutMs };
}

export function toolSpec(tool: Tool): ToolSpec {
  const { name, description } = tool;
  if (tool.parameters) return { name, description, parameters: tool.parameters };
  const { $schema: _, ...parameters } = z.toJSONSchema(tool.schema, { io: 'input', unrepresentable: 'any' });
  return { name, description, parameters };
}

/** When the tasks of a turn wake their owner, and when they end by themselves. */
const waiting = {
  /** False: the turn goes on meanwhile. The results wake the agent all the same. */
  wait: z.boolean(),
  join: Join,
  /** From now, ms; the troupe's limit where nothing is said. */
  deadlineMs: z.number().positive().optional(),
};

/**
 * What a tool may ask of the turn beside its text. Whether it may is the engine's to say; it is carried out when the turn
 * commits, and not at all if it does not end well.
 */
export const ToolRequest = z.discriminatedUnion('kind', [
  z
    .strictObject({
      kind: z.literal('handoff'),
      to: AgentId,
      summary: HandoffDraft,
      /** How a summary without a goal is completed; without this it needs one. */
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
    /** Also to somebody who is waiting for this very work. */
    force: z.boolean(),
    ...waiting,
  }),
  z.strictObject({ kind: z.literal('followUp'), task: z.string(), text: z.string(), ...waiting }),
  z.strictObject({
    kind: z.literal('question'),
    text: z.string(),
    by: z.array(z.string()),
    choices: z.array(z.string()).optional(),
    ...waiting,
  }),
  z.strictObject({ kind: z.literal('cancelTask'), task: z.string(), reason: z.string() }),
  /** `at`: ms since the epoch; or `inMs` from now. */
  z.strictObject({
    kind: z.literal('remind'),
    text: z.string(),
    at: z.number().optional(),
    inMs: z.number().positive().optional(),
  }),
  TodosBody.extend({ kind: z.literal('todos') }),
  /** The turn ends without words, on purpose. */
  z.strictObject({ kind: z.literal('noResponse'), reason: z.string() }),
]);
export type ToolRequest = z.infer<typeof ToolRequest>;
export type RequestOf<K extends ToolRequest['kind']> = Extract<ToolRequest, { kind: K }>;
