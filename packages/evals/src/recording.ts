import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { TroupeError } from './troupe.ts';

const ToolCall = z.strictObject({
  id: z.string().min(1).max(256),
  name: z.string().min(1).max(256),
  /** JSON, as the model wrote it. */
  args: z.string(),
});

const ToolSpec = z.object({
  name: z.string(),
  description: z.string(),
  parameters: z.record(z.string(), z.unknown()),
});

/** An answer of a model in one call. */
const RecordedAnswer = z.strictObject({
  /** Id of the turn. */
  turn: z.string(),
  /** Number of the model call within its turn, from 1. */
  step: z.int().positive(),
  /** What it said. */
  content: z.string(),
  /** What it called, with the arguments as it wrote them. */
  calls: z.array(ToolCall).optional(),
  /** Why there is no answer. */
  failed: z.string().optional(),
});
export type RecordedAnswer = z.infer<typeof RecordedAnswer>;

/** A call of a tool of the company, with what it returned. */
const RecordedCall = z.strictObject({
  /** Id of the turn. */
  turn: z.string(),
  /** Name of the tool. */
  tool: z.string(),
  /** Arguments as the tool was given them. */
  args: z.record(z.string(), z.unknown()),
  /** Whether it worked. */
  outcome: z.enum(['done', 'failed']),
  /** What the model was told. */
  result: z.string(),
});
export type RecordedCall = z.infer<typeof RecordedCall>;

/** A conversation as a test plays it again: `troupe eval record` writes it. */
export const Recording = z.strictObject({
  /** Of this format. */
  version: z.literal(1),
  /** Id of the conversation. Ids of turns and tasks follow from it. */
  conversation: z.string(),
  /** When the clock begins, ms since the epoch, if something depended on the time of day. Default: as in every test. */
  startsAt: z.number().optional(),
  /** Hashes of what each agent was told of itself, and of its tools, when this was written. */
  agents: z.record(
    z.string(),
    z.strictObject({
      /** Of its instructions, role and approvals; of several, if they changed in between. */
      instructions: z.array(z.string()),
      /** Of its tools: names, descriptions and schemas. */
      tools: z.array(z.string()),
    }),
  ),
  /** Answers of models. */
  answers: z.array(RecordedAnswer),
  /** Calls of tools. */
  calls: z.array(RecordedCall),
  /** Tools of an imported conversation that the company lacks: name, and ids of the agents that called it. */
  standIns: z.record(z.string(), z.array(z.string())),
  /** What the company's MCP servers offered, by their names: none of them is started. */
  servers: z
    .record(
      z.string(),
      z.strictObject({
        /** Its tools, as models were offered them. `grant`: what gives it, without the name of the server. */
        tools: z.array(ToolSpec.extend({ grant: z.string() })),
        /** Whether that is all that the server offered. */
        isWhole: z.boolean(),
      }),
    )
    .default({}),
  /** Texts that people attached, by name. */
  files: z.record(z.string(), z.string()),
});
export type Recording = z.infer<typeof Recording>;

/** Reads a recording. Throws `config_invalid`. */
export function readRecording(file: string | URL): Recording {
  const path = typeof file === 'string' ? file : fileURLToPath(file);
  try {
    return Recording.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (cause) {
    const reason = cause instanceof z.ZodError ? z.prettifyError(cause) : String(cause);
    throw new TroupeError('config_invalid', `${path} is no recording: ${reason}`, { file: path }, { cause });
  }
}

/** The same text for the same arguments, in whatever order they stand. */
export function comparable(value: unknown): string {
  try {
    return JSON.stringify(value, (_, part: unknown) => (isRecord(part) ? sorted(part) : part)) ?? 'null';
  } catch {
    // It is nested too deep.
    return '';
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function sorted(record: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
