import type { ErrorCode } from '../errors.ts';
import type { PromptMessage, Reasoning, ToolCall, ToolSpec, TurnId, Usage } from '../events/index.ts';

/**
 * The provider port: one model call, as a stream of events in this legal order:
 *
 *   start  session?  (text | reasoning | call | compacted)*  ( done | failed | aborted )
 *
 * - The stream never throws and always ends with exactly one of the last three.
 * - `call` is emitted once per tool call, when its arguments are complete.
 * - `done` only when the vendor said that the answer is finished: a stream that just ends is `failed` with
 *   `provider_truncated` (the SDKs end quietly on a cut connection).
 * - When `signal` aborts, the stream ends with `aborted`, whatever the SDK does.
 * - Adapters never retry: backoff is the engine's.
 * - `session` and `compacted` come from session-stateful providers only (`capabilities.sessionResumption`).
 */
export type ModelEvent =
  | { type: 'start' }
  | { type: 'session'; change: SessionChange; id: string }
  | { type: 'text'; delta: string }
  | { type: 'reasoning'; reasoning: Reasoning }
  | { type: 'call'; call: ToolCall }
  /** The provider has shortened its memory by itself. */
  | { type: 'compacted' }
  /** `doubt`: why the vendor's usage is not believed; `usage` then is none. */
  | {
      type: 'done';
      stop: 'end' | 'calls' | 'length' | 'refusal';
      usage: Usage;
      doubt?: string;
      session?: SessionMark;
      response?: ResponseName;
    }
  | { type: 'failed'; error: ModelFailure }
  | { type: 'aborted' };

/** The answer as its vendor names it; the model may be another than the one that was asked for. */
export interface ResponseName {
  model?: string | undefined;
  id?: string | undefined;
}

export interface ModelFailure {
  code: Extract<ErrorCode, `provider_${string}` | 'context_overflow'>;
  message: string;
  /** When the vendor said how long to wait. */
  retryAfterMs?: number;
  /** No server took the request, or it said that it is not there yet: it may be restarting, and be back in minutes. */
  isAway?: boolean;
}

/** `warm`: it was open in this process and is where it should be. `rewound`: what came after the checkpoint was dropped. */
export type SessionChange = 'started' | 'warm' | 'resumed' | 'rewound';

/** A place in a provider's own memory of a conversation. Opaque to all but the adapter that gave it. */
export interface SessionMark {
  id: string;
  /** The end of the last answer that counts: whatever the session holds beyond it is dropped when it is resumed. */
  checkpoint: string;
}

/**
 * What a session-stateful provider is asked for. A turn that calls tools stays open in the provider: its stream ends
 * with `done` and `stop: 'calls'`, and the next request for the same `cacheKey` continues it with the results.
 */
export type SessionRequest =
  /** `messages` are the whole prompt, baseline first: a new session begins. */
  | { kind: 'start' }
  /** `messages` are what the session has not seen beyond the mark: one new turn in it. Other roles than `user` may come: words and calls of the agent's own that its session does not hold. */
  | { kind: 'resume'; mark: SessionMark }
  /** `messages` are the results of the calls that the last stream ended with, in their order. */
  | { kind: 'continue' };

export interface ModelRequest {
  model: string;
  /** Leading system messages first; the last message is `user` or `tool`. */
  messages: readonly PromptMessage[];
  /**
   * As base64, by hash: the bytes of every image that a message names. Messages for a provider without
   * `capabilities.images` name none, and say in words what is not shown.
   */
  images?: ReadonlyMap<string, string>;
  tools: readonly ToolSpec[];
  /** Indexes into `messages` after which an explicit cache breakpoint pays. */
  breakpoints: readonly number[];
  maxOutputTokens: number;
  /** Stable per tenant, conversation and agent: for vendors that route by cache key. */
  cacheKey: string;
  /** Given to session-stateful providers, except for `purpose: 'compaction'`, which must leave no trace in any session. */
  session?: SessionRequest;
  /** JSON schema (draft 2020-12) that the answer must fit, where the agent declares one. */
  replySchema?: Record<string, unknown>;
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
  /** A session can be taken back to an earlier mark. Without it, a session whose turn broke off is given up. */
  rewind: boolean;
  /** A session can be copied. */
  fork: boolean;
  /** System messages may stand between others. */
  interleavedSystem: boolean;
  toolCalling: boolean;
  /** Images among the messages. */
  images: boolean;
  caching: 'none' | 'automatic' | 'breakpoints';
  /** Whether its usage is what the vendor counted; a guess must not calibrate anything. */
  reportsUsage: boolean;
}

/** What a plain request-and-answer provider can do; adapters say what differs. */
export const STATELESS: ProviderCapabilities = {
  sessionResumption: false,
  rewind: false,
  fork: false,
  interleavedSystem: false,
  toolCalling: true,
  images: false,
  caching: 'automatic',
  reportsUsage: true,
};

export interface Provider {
  readonly name: string;
  readonly capabilities: ProviderCapabilities;
  /** Where its sessions live (machine and directories): a session id is worth nothing elsewhere. */
  readonly home?: string;
  /** Which server is asked, where it is one. */
  readonly server?: { address: string; port: number };
  stream(request: ModelRequest, options: { signal: AbortSignal }): AsyncIterable<ModelEvent>;
  /** The turn that this cache key has open, waiting for results, is not continued. Its session stays usable by its marks. */
  leave?(cacheKey: string): void;
  /** Ends processes and connections. */
  close?(): Promise<void>;
}
