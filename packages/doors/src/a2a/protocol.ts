import * as z from 'zod';
import { ConversationId, TroupeError } from '../troupe.ts';

/** A2A 1.0 as JSON, the ProtoJSON of `lf.a2a.v1`: only the parts that Troupe writes. */

export const PROTOCOL_VERSION = '1.0';

export type TaskState =
  | 'TASK_STATE_SUBMITTED'
  | 'TASK_STATE_WORKING'
  | 'TASK_STATE_COMPLETED'
  | 'TASK_STATE_FAILED'
  | 'TASK_STATE_CANCELED'
  | 'TASK_STATE_INPUT_REQUIRED';

export type A2aPart = { metadata?: object } & (
  | { text: string }
  | { raw: string; mediaType: string; filename?: string }
  | { data: unknown }
);

export interface A2aMessage {
  messageId: string;
  contextId: string;
  taskId: string;
  role: 'ROLE_USER' | 'ROLE_AGENT';
  parts: A2aPart[];
  metadata?: object;
}

export interface TaskStatus {
  state: TaskState;
  /** ISO 8601, UTC. */
  timestamp: string;
  message?: A2aMessage;
}

export interface Artifact {
  artifactId: string;
  name: string;
  parts: A2aPart[];
  metadata: object;
}

export interface A2aTask {
  id: string;
  contextId: string;
  status: TaskStatus;
  artifacts?: Artifact[];
  history?: A2aMessage[];
}

interface About {
  taskId: string;
  contextId: string;
}

export type ArtifactUpdate = About & { artifact: Artifact; append: boolean; lastChunk: boolean };
export type StatusUpdate = About & { status: TaskStatus };

/** An event of a stream after the task itself. */
export type TaskUpdate = { artifactUpdate: ArtifactUpdate } | { statusUpdate: StatusUpdate };

/** One event of a stream. */
export type StreamResponse = { task: A2aTask } | TaskUpdate;

/** Fields with JSON of the client's own, whose names are not the protocol's. */
const OPAQUE: ReadonlySet<string> = new Set(['data', 'metadata']);

/** Reads names and nulls as ProtoJSON parsers do: names of the proto file (`task_id`) are accepted too, and null means absent. */
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
  /** Without it a new context is begun. Some clients send an empty string instead. */
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
  /** By name or by number, like the role. */
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

/** A JSON-RPC request. A notification, which has no id, is answered like any other request. */
export const RpcRequest = z.object({
  jsonrpc: z.literal('2.0'),
  id: z.union([z.string().max(1_000), z.number()]).nullish(),
  method: z.string().max(200),
  params: z.record(z.string(), z.unknown()).nullish(),
});

/** The protocol's errors, by the reason that clients see. */
const PROBLEMS = {
  TASK_NOT_FOUND: { code: -32001, status: 404, name: 'NOT_FOUND', of: 'task_unknown' },
  TASK_NOT_CANCELABLE: { code: -32002, status: 400, name: 'FAILED_PRECONDITION', of: 'command_refused' },
  UNSUPPORTED_OPERATION: { code: -32004, status: 400, name: 'FAILED_PRECONDITION', of: 'command_refused' },
  CONTENT_TYPE_NOT_SUPPORTED: { code: -32005, status: 415, name: 'INVALID_ARGUMENT', of: 'event_invalid' },
  VERSION_NOT_SUPPORTED: { code: -32009, status: 400, name: 'FAILED_PRECONDITION', of: 'event_invalid' },
  INVALID_PARAMS: { code: -32602, status: 400, name: 'INVALID_ARGUMENT', of: 'event_invalid' },
  INVALID_REQUEST: { code: -32600, status: 400, name: 'INVALID_ARGUMENT', of: 'event_invalid' },
  PARSE_ERROR: { code: -32700, status: 400, name: 'INVALID_ARGUMENT', of: 'event_invalid' },
  METHOD_NOT_FOUND: { code: -32601, status: 404, name: 'NOT_FOUND', of: 'event_invalid' },
} as const;

type Reason = keyof typeof PROBLEMS;

/** What a client sees of an error, in either binding. */
export interface Problem {
  code: number;
  status: number;
  /** Canonical name of the status. */
  name: string;
  reason: string;
  message: string;
}

const REASON = 'a2aReason';

/** An error of the protocol. */
export function a2aError(reason: Reason, message: string): TroupeError {
  return new TroupeError(PROBLEMS[reason].of, message, { [REASON]: reason });
}

/** The error in the protocol's form. Null if the protocol has none: the answer is then that of any other route. */
export function problemOf(thrown: unknown): Problem | null {
  if (!(thrown instanceof TroupeError)) return null;
  const { code, message, data } = thrown;
  const reason = (data[REASON] as Reason | undefined) ?? REASONS[code];
  if (!reason) return null;
  const { of: _, ...problem } = PROBLEMS[reason];
  return { ...problem, reason, message };
}

/** Error codes that any call may have. */
const REASONS: Partial<Record<TroupeError['code'], Reason>> = {
  task_unknown: 'TASK_NOT_FOUND',
  conversation_unknown: 'TASK_NOT_FOUND',
  command_refused: 'UNSUPPORTED_OPERATION',
  conversation_archived: 'UNSUPPORTED_OPERATION',
  agent_busy: 'UNSUPPORTED_OPERATION',
  event_invalid: 'INVALID_PARAMS',
  event_conflict: 'INVALID_PARAMS',
  agent_unknown: 'INVALID_PARAMS',
  address_refused: 'INVALID_PARAMS',
};

const DOMAIN = 'a2a-protocol.org';

/** `google.rpc.ErrorInfo`, as the list that both bindings use. */
export function errorInfo({ reason }: Pick<Problem, 'reason'>): object[] {
  return [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: DOMAIN }];
}

/** A message in the log that began a task. Its id for clients is `CONVERSATION~SEQ`. */
export interface TaskPlace {
  conversation: ConversationId;
  seq: number;
}

/** No conversation id contains `~`. */
const FORM = /^([^~]{1,128})~(\d{1,15})$/;

export function taskId({ conversation, seq }: { conversation: string; seq: number }): string {
  return `${conversation}~${seq}`;
}

/** Throws TASK_NOT_FOUND if the text cannot be the id of a task. */
export function parseTaskId(text: string): TaskPlace {
  const [, name, digits] = FORM.exec(text) ?? [];
  const conversation = ConversationId.safeParse(name);
  const seq = Number(digits);
  if (conversation.success && seq > 0) return { conversation: conversation.data, seq };
  throw unknownTask(text);
}

export function unknownTask(id: string): Error {
  return a2aError('TASK_NOT_FOUND', `there is no task "${id.slice(0, 200).toWellFormed()}"`);
}
