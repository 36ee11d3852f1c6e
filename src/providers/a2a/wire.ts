import * as z from 'zod';

/** What we read of A2A 1.0, with its own field names and only the fields we use. */

const MAX_PARTS = 1_000;
const Part = z.object({
  text: z.string().optional(),
  data: z.unknown().optional(),
  raw: z.string().optional(),
  url: z.string().optional(),
  filename: z.string().optional(),
  mediaType: z.string().optional(),
});
const Parts = z.array(Part).max(MAX_PARTS).default([]);

const Message = z.object({ parts: Parts, contextId: z.string().optional() });
const Artifact = z.object({ artifactId: z.string(), parts: Parts });
export type Artifact = z.infer<typeof Artifact>;
const Status = z.object({ state: z.string(), message: Message.optional() });
export type Status = z.infer<typeof Status>;

export const Task = z.object({
  id: z.string().min(1),
  contextId: z.string(),
  status: Status,
  artifacts: z.array(Artifact).max(MAX_PARTS).default([]),
});
export type Task = z.infer<typeof Task>;

/** One event of a stream, or the answer to `SendMessage`: exactly one of its fields is set. */
export const StreamAnswer = z.object({
  task: Task.optional(),
  message: Message.optional(),
  statusUpdate: z.object({ taskId: z.string(), contextId: z.string(), status: Status }).optional(),
  artifactUpdate: z
    .object({
      taskId: z.string(),
      contextId: z.string(),
      artifact: Artifact,
      append: z.boolean().default(false),
    })
    .optional(),
});
export type StreamAnswer = z.infer<typeof StreamAnswer>;

export const RpcAnswer = z.object({
  result: z.unknown().optional(),
  error: z.object({ code: z.number(), message: z.string() }).optional(),
});

export const Card = z.object({
  supportedInterfaces: z
    .array(z.object({ url: z.url(), protocolBinding: z.string(), protocolVersion: z.string() }))
    .max(100),
  defaultInputModes: z.array(z.string()).max(1_000).default([]),
  capabilities: z.object({ streaming: z.boolean().default(false) }).prefault({}),
});
export type Card = z.infer<typeof Card>;

/** The parts as one text. Files are named, and data is JSON. */
export function textOfParts(parts: readonly z.infer<typeof Part>[]): string {
  return parts.map(textOfPart).join('');
}

function textOfPart({
  text,
  data,
  raw,
  url,
  filename = 'without a name',
  mediaType,
}: z.infer<typeof Part>): string {
  if (text !== undefined) return text;
  if (data !== undefined) return JSON.stringify(data);
  if (raw === undefined && url === undefined) return '';
  return `[file ${filename}${mediaType === undefined ? '' : `, ${mediaType}`}]`;
}
