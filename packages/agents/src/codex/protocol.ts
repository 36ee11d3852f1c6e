import * as z from 'zod';
import { classifyFailure, type ModelFailure, type VendorError } from '../troupe.ts';

/** The messages of `codex app-server` that Troupe reads, under Codex's own field names, with only the fields that Troupe uses. */

export const TokenCounts = z.object({
  inputTokens: z.number(),
  cachedInputTokens: z.number(),
  cacheWriteInputTokens: z.number().default(0),
  outputTokens: z.number(),
  reasoningOutputTokens: z.number(),
});
export type TokenCounts = z.infer<typeof TokenCounts>;

export const TurnError = z.object({
  message: z.string(),
  /** A word, or an object whose only key is the word. */
  codexErrorInfo: z.unknown(),
});
export type TurnError = z.infer<typeof TurnError>;

const Item = z.object({
  type: z.string(),
  id: z.string(),
  text: z.string().optional(),
  summary: z.array(z.string()).optional(),
  content: z.array(z.unknown()).optional(),
});

/** An item in the format of the model's API. */
const RawItem = z.object({
  type: z.string(),
  role: z.string().optional(),
  name: z.string().optional(),
  call_id: z.string().optional(),
  arguments: z.string().optional(),
});

export const ToolCallParams = z.object({
  threadId: z.string(),
  turnId: z.string(),
  callId: z.string(),
  tool: z.string(),
  arguments: z.unknown(),
});
export type ToolCallParams = z.infer<typeof ToolCallParams>;

const ofTurn = <Method extends string, Shape extends z.ZodRawShape>(method: Method, shape: Shape) =>
  z.object({ method: z.literal(method), params: z.object({ turnId: z.string(), ...shape }) });

export const TurnNote = z.discriminatedUnion('method', [
  ofTurn('item/agentMessage/delta', { itemId: z.string(), delta: z.string() }),
  ofTurn('item/reasoning/summaryTextDelta', {
    itemId: z.string(),
    delta: z.string(),
    summaryIndex: z.number().optional(),
  }),
  ofTurn('item/completed', { item: Item }),
  ofTurn('rawResponseItem/completed', { item: RawItem }),
  ofTurn('rawResponse/completed', { usage: TokenCounts.nullable() }),
  ofTurn('thread/tokenUsage/updated', {
    tokenUsage: z.object({ total: TokenCounts, last: TokenCounts }),
  }),
  ofTurn('error', { error: TurnError, willRetry: z.boolean() }),
  ofTurn('turn/completed', { status: z.string(), error: TurnError.nullable() }),
]);
export type TurnNote = z.infer<typeof TurnNote>;

const METHODS = new Set<string>(TurnNote.options.map(({ shape }) => shape.method.value));

const Turn = z.object({ id: z.string(), status: z.string(), error: TurnError.nullable() });
const TurnParams = z.object({ turn: Turn });

/** Null for a notification that is not about a turn, or not used here. */
export function turnNoteOf(method: string, params: unknown): TurnNote | null {
  if (!METHODS.has(method)) return null;
  if (method !== 'turn/completed') return TurnNote.parse({ method, params });
  const { id, status, error } = TurnParams.parse(params).turn;
  return { method, params: { turnId: id, status, error } };
}

export const ThreadAnswer = z.object({ thread: z.object({ id: z.string() }) });
export const TurnAnswer = z.object({ turn: z.object({ id: z.string() }) });
export const TurnsPage = z.object({
  data: z.array(z.object({ id: z.string(), status: z.string() })),
  nextCursor: z.string().nullable(),
});
export type TurnsPage = z.infer<typeof TurnsPage>;

/** Codex's error words (`codexErrorInfo`), mapped to those of OpenAI's API. */
const WORDS: Record<string, string> = {
  contextWindowExceeded: 'context_length_exceeded',
  sessionBudgetExceeded: 'insufficient_quota',
  usageLimitExceeded: 'insufficient_quota',
  rateLimitExceeded: 'rate_limit_exceeded',
  serverOverloaded: 'overloaded',
  flexUnavailable: 'overloaded',
  policyCapacityUnavailable: 'overloaded',
  modelNotFound: 'model_not_found',
  unauthorized: 'invalid_api_key',
  badRequest: 'invalid_request_error',
  cyberPolicy: 'content_policy_violation',
  misalignmentPolicyViolation: 'content_policy_violation',
  inferenceHookDenied: 'content_policy_violation',
};
/** The API's own refusal arrives only as such a sentence. */
const REFUSED = /safety system|content.?policy|usage polic(y|ies)/i;
const CUT = /stream disconnected before completion: (stream closed|idle timeout|transport error)/i;
const PREFIX = /^(unexpected status \d+ [^:]*|stream disconnected before completion): /i;
const INCOMPLETE = /Incomplete response returned, reason: (\w+)/;
const RETRY_IN = /try again in ([\d.]+) ?(ms|s|seconds?|m|minutes?)\b/i;

interface FailureOptions {
  opened: boolean;
  now: number;
  secrets: readonly string[];
}

export function failureOf(error: TurnError, options: FailureOptions): ModelFailure {
  if (CUT.test(error.message)) return { code: 'provider_truncated', message: error.message };
  const failure = classifyFailure(vendorErrorOf(error), options);
  const retryAfterMs = retryAfter(error.message);
  return retryAfterMs === undefined ? failure : { ...failure, retryAfterMs };
}

/** The stop reason of a cut or filtered answer, which Codex reports as a failure; null for a real failure. */
export function incompleteStop({ message }: TurnError): 'length' | 'refusal' | null {
  const reason = INCOMPLETE.exec(message)?.[1];
  if (reason === undefined) return null;
  return reason === 'content_filter' ? 'refusal' : 'length';
}

function vendorErrorOf({ message, codexErrorInfo }: TurnError): VendorError {
  const [info, status] = infoOf(codexErrorInfo);
  const body = bodyOf(message);
  const plain = body.message ?? message.replace(PREFIX, '').replace(/, url: \S+$/, '');
  const word = WORDS[info];
  const words = [...(word === undefined ? [] : [word]), ...body.words];
  if (REFUSED.test(plain)) words.push('content_policy_violation');
  const error: VendorError = { words, message: plain, connection: false };
  if (status !== undefined) error.status = status;
  // These kinds of failure have a status unless the server was not reached.
  else if (typeof codexErrorInfo === 'object' && codexErrorInfo !== null) error.connection = true;
  return error;
}

function infoOf(info: unknown): [word: string, status: number | undefined] {
  if (typeof info === 'string') return [info, undefined];
  const [first] = Object.entries((info ?? {}) as Record<string, unknown>);
  const { httpStatusCode } = (first?.[1] ?? {}) as { httpStatusCode?: unknown };
  return [first?.[0] ?? '', typeof httpStatusCode === 'number' ? httpStatusCode : undefined];
}

/** Reads the API's response body, which is the message of an unmapped 400. */
function bodyOf(message: string): { message?: string; words: string[] } {
  if (!message.startsWith('{')) return { words: [] };
  try {
    const { error } = JSON.parse(message) as { error?: Record<string, unknown> };
    const words = [error?.['type'], error?.['code']].filter((word) => typeof word === 'string');
    const said = error?.['message'];
    return typeof said === 'string' ? { message: said, words } : { words };
  } catch {
    return { words: [] };
  }
}

function retryAfter(message: string): number | undefined {
  const [, amount, unit = 's'] = RETRY_IN.exec(message) ?? [];
  if (amount === undefined) return undefined;
  const ms = unit === 'ms' ? 1 : unit.startsWith('m') ? 60_000 : 1000;
  return Math.round(Number(amount) * ms);
}
