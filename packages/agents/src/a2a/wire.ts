import * as z from 'zod';

/** What we read of A2A 1.0, with its own field names and only the fields we use. */

const MAX_PARTS = 1_000;
/** Levels of an answer above its free data. */
const MAX_LEVELS = 10;
/** Fields whose nulls are data. */
const FREE = new Set(['data', 'metadata']);

/** Null is absence, as in all JSON of Protocol Buffers (https://protobuf.dev/programming-guides/json/). */
function withoutNulls(value: unknown, levels = MAX_LEVELS): unknown {
  if (typeof value !== 'object' || value === null || levels === 0) return value;
  if (Array.isArray(value))
    return value.filter((item) => item !== null).map((item) => withoutNulls(item, levels - 1));
  const kept = Object.entries(value).filter(([, item]) => item !== null);
  return Object.fromEntries(
    kept.map(([key, item]) => [key, FREE.has(key) ? item : withoutNulls(item, levels - 1)]),
  );
}

const answer = <S extends z.ZodType>(shape: S) => z.preprocess((given) => withoutNulls(given), shape);

const UNREADABLE = '[a part that cannot be read]';
const Part = z.object({
  text: z.string().optional(),
  data: z.unknown().optional(),
  raw: z.string().optional(),
  url: z.string().optional(),
  filename: z.string().optional(),
  mediaType: z.string().optional(),
});
/** One that cannot be read is named, and the others stay. */
const Parts = z
  .array(Part.catch({ text: UNREADABLE }))
  .max(MAX_PARTS)
  .default([]);

const Message = z.object({ parts: Parts, contextId: z.string().optional() });
const Artifact = z.object({ artifactId: z.string().default(''), parts: Parts });
export type Artifact = z.infer<typeof Artifact>;
const Status = z.object({ state: z.string(), message: Message.optional() });
export type Status = z.infer<typeof Status>;

const PlainTask = z.object({
  id: z.string().min(1),
  contextId: z.string().default(''),
  status: Status,
  artifacts: z
    .array(Artifact.catch({ artifactId: '', parts: [{ text: UNREADABLE }] }))
    .max(MAX_PARTS)
    .default([]),
});
export const Task = answer(PlainTask);
export type Task = z.infer<typeof Task>;

/** One event of a stream, or the answer to `SendMessage`: exactly one of its fields is set. */
export const StreamAnswer = answer(
  z.object({
    task: PlainTask.optional(),
    message: Message.optional(),
    statusUpdate: z
      .object({ taskId: z.string(), contextId: z.string().default(''), status: Status })
      .optional(),
    artifactUpdate: z
      .object({
        taskId: z.string(),
        contextId: z.string().default(''),
        artifact: Artifact,
        append: z.boolean().default(false),
      })
      .optional(),
  }),
);
export type StreamAnswer = z.infer<typeof StreamAnswer>;

export const RpcAnswer = answer(
  z.object({
    result: z.unknown().optional(),
    error: z
      .object({ code: z.coerce.number(), message: z.string().default('it gives no reason') })
      .optional(),
  }),
);

const Interface = z.object({ url: z.url(), protocolBinding: z.string(), protocolVersion: z.string() });

export const Card = answer(
  z.object({
    // Those that cannot be read are for other clients.
    supportedInterfaces: z
      .array(z.unknown())
      .max(100)
      .transform((given) => given.flatMap((each) => Interface.safeParse(each).data ?? [])),
    defaultInputModes: z.array(z.string()).max(1_000).default([]),
    capabilities: z.object({ streaming: z.boolean().default(false) }).prefault({}),
  }),
);
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
