import * as z from 'zod';
import { ConversationId } from '../troupe.ts';

/** Holds JSON of the client's own, whose names are not of the protocol. */
const OPAQUE: ReadonlySet<string> = new Set(['data', 'metadata']);

/** As parsers of ProtoJSON read it: names are also those of the proto file (`task_id`), and null is absence. */
export function fromProtoJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromProtoJson);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).flatMap(([name, each]): [string, unknown][] => {
    if (OPAQUE.has(name)) return [[name, each]];
    return each === null ? [] : [[camelCase(name), fromProtoJson(each)]];
  });
  return Object.fromEntries(entries);
}

export function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

const Id = z.string().min(1).max(1_000);
const MediaType = z.string().max(255);
const PartFields = z.object({
  text: z.string().optional(),
  /** Base64. */
  raw: z
    .string()
    .max(32 * 1_024 * 1_024)
    .optional(),
  url: z.string().max(2_048).optional(),
  data: z.unknown().optional(),
  filename: z.string().max(255).optional(),
  mediaType: MediaType.optional(),
});
export type GivenPart = z.infer<typeof PartFields>;

const GivenMessage = z.object({
  messageId: Id,
  /** A new context is begun without it. Clients send the empty string for none. */
  contextId: z.union([z.literal(''), ConversationId]).optional(),
  taskId: z.string().max(200).optional(),
  role: z.literal(['ROLE_USER', 1]),
  parts: z.array(PartFields).min(1).max(1_000),
});
export type GivenMessage = z.infer<typeof GivenMessage>;

const TaskText = z.string().min(1).max(200);

const HistoryLength = z.int().nonnegative().optional();

export const PushConfig = z.object({
  id: z.string().max(128).optional(),
  taskId: z.string().max(200).optional(),
  url: z.string().min(1).max(2_000),
  token: z.string().max(4_000).optional(),
  authentication: z
    .object({ scheme: z.string().max(100), credentials: z.string().max(4_000).optional() })
    .nullish(),
});
export type PushConfig = z.infer<typeof PushConfig>;

export const NewPushRequest = PushConfig.extend({ taskId: TaskText });
export const PushListRequest = z.object({ taskId: TaskText });
export const PushRequest = PushListRequest.extend({ id: z.string().min(1).max(128) });
export type PushRequest = z.infer<typeof PushRequest>;

export const SendRequest = z.object({
  message: GivenMessage,
  configuration: z
    .object({
      acceptedOutputModes: z.array(MediaType).max(100).optional(),
      historyLength: HistoryLength,
      returnImmediately: z.boolean().optional(),
      taskPushNotificationConfig: PushConfig.nullish(),
    })
    .nullish(),
});
export type SendRequest = z.infer<typeof SendRequest>;

export const TaskRequest = z.object({ id: TaskText, historyLength: HistoryLength });

const STATES = [
  'TASK_STATE_UNSPECIFIED',
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_REJECTED',
  'TASK_STATE_AUTH_REQUIRED',
] as const;

export const ListRequest = z.object({
  contextId: z.union([z.literal(''), ConversationId]).optional(),
  /** By name or by number, as for the role. */
  status: z
    .union([
      z.enum(STATES),
      z
        .int()
        .min(0)
        .max(STATES.length - 1)
        .transform((number) => STATES[number]!),
    ])
    .optional(),
  pageSize: z.int().min(1).max(100).default(50),
  pageToken: z.string().max(1_000).default(''),
  historyLength: HistoryLength,
  statusTimestampAfter: z.iso.datetime({ offset: true }).optional(),
  includeArtifacts: z.boolean().optional(),
});
export type ListRequest = z.infer<typeof ListRequest>;

/** A request of JSON-RPC. A notification, which has no id, is answered as any other. */
export const RpcRequest = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string().max(1_000), z.number()]).nullish(),
  method: z.string().max(200),
  params: z.record(z.string(), z.unknown()).nullish(),
});
