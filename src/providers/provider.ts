import type { ErrorCode } from '../errors.ts';
import type { PromptMessage, Reasoning, ToolCall, ToolSpec, TurnId, Usage } from '../events/index.ts';

/**
 * The provider port: one model call, as a stream of events in this legal order:
 *
 *   start  (text | reasoning | call)*  ( done | failed | aborted )
 *
 * - The stream never throws and always ends with exactly one of the last three.
 * - `call` is emitted once per tool call, when its arguments are complete.
 * - `done` only when the vendor said that the answer is finished: a stream that just ends is `failed` with
 *   `provider_truncated` (the SDKs end quietly on a cut connection).
 * - When `signal` aborts, the stream ends with `aborted`, whatever the SDK does.
 * - Adapters never retry: backoff is the engine's.
 */
export type ModelEvent =
  | { type: 'start' }
  | { type: 'text'; delta: string }
  | { type: 'reasoning'; reasoning: Reasoning }
  | { type: 'call'; call: ToolCall }
  | { type: 'done'; stop: 'end' | 'calls' | 'length' | 'refusal'; usage: Usage }
  | { type: 'failed'; error: ModelFailure }
  | { type: 'aborted' };

export interface ModelFailure {
  code: Extract<ErrorCode, `provider_${string}` | 'context_overflow'>;
  message: string;
  /** When the vendor said how long to wait. */
  retryAfterMs?: number;
}

export interface ModelRequest {
  model: string;
  /** Leading system messages first; the last message is `user` or `tool`. */
  messages: readonly PromptMessage[];
  tools: readonly ToolSpec[];
  /** Indexes into `messages` after which an explicit cache breakpoint pays. */
  breakpoints: readonly number[];
  maxOutputTokens: number;
  /** Stable per tenant, conversation and agent: for vendors that route by cache key. */
  cacheKey: string;
  /** Who asks; recorded by fakes, never sent to a vendor. `call` counts the calls of this step, from 1. */
  trace: {
    conversation: string;
    agent: string;
    turn: TurnId;
    step: number;
    call: number;
    /** Default `turn`. */
    purpose?: 'compaction';
  };
}

export interface ProviderCapabilities {
  /** The provider remembers the conversation itself; it is sent deltas. */
  sessionResumption: boolean;
  /** System messages may stand between others. */
  interleavedSystem: boolean;
  toolCalling: boolean;
  caching: 'none' | 'automatic' | 'breakpoints';
  /** Whether its usage is what the vendor counted; a guess must not calibrate anything. */
  reportsUsage: boolean;
}

export interface Provider {
  readonly name: string;
  readonly capabilities: ProviderCapabilities;
  stream(request: ModelRequest, options: { signal: AbortSignal }): AsyncIterable<ModelEvent>;
}
