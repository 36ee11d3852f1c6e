import * as z from 'zod';

/** What we read of the messages of `codex app-server`; its own field names, everything else left out. */

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
  /** A word, or an object whose one key is the word. */
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

/** An item as the model's API gave it. */
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

/** A notification that belongs to a turn. */
export const TurnNote = z.discriminatedUnion('method', [
  ofTurn('item/agentMessage/delta', { itemId: z.string(), delta: z.string() }),
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

/** Null for what concerns no turn, or concerns us not. */
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
