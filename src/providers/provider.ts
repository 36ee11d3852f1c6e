import type { AiSdkModel, AiSdkVendor } from './ai-sdk-model.ts';
import { type ErrorCode, policyOf } from '../base/errors.ts';
import type { Effort, Sampling } from './request-settings.ts';
import type { MarkFamily } from './template-marks.ts';
import type { PromptMessage, Reasoning, ToolCall, ToolSpec, TurnId, Usage } from '../events/index.ts';

/**
 * The provider port: one model call, as a stream of events in this legal order:
 *
 *   start  session?  (begun | text | thinking | reasoning | calling | call | compacted)*  ( done | failed | aborted )
 *
 * - The stream never throws and always ends with exactly one of the last three.
 * - `call` is emitted once per tool call, when its arguments are complete. A call that was cut or cannot be read is named by
 *   `broken` of the end instead.
 * - `thinking` and `calling` are pieces of the later `reasoning` and `call`, for watchers only. A provider may omit them. The
 *   first `calling` of an id begins the call, perhaps with an empty `delta`; all deltas of an id, joined, are the arguments of
 *   its `call`. A call that never becomes whole does not count.
 * - `done` only when the vendor said that the answer is finished: a stream that just ends is `failed` with
 *   `provider_truncated`, because SDKs end quietly on a cut connection.
 * - When `signal` aborts, the stream ends with `aborted`, whatever the SDK does.
 * - Adapters never retry: backoff is the engine's.
 * - `session` and `compacted` come from session-stateful providers only (`capabilities.sessionResumption`).
 */
export type ModelEvent =
  | { type: 'start' }
  | { type: 'session'; change: SessionChange; id: string }
  | { type: 'text'; delta: string }
  /** A piece of the reasoning, as the model writes it. */
  | { type: 'thinking'; delta: string }
  | { type: 'reasoning'; reasoning: Reasoning }
  /** A piece of a call's arguments, as the model writes them. An empty `delta` begins the call. */
  | { type: 'calling'; id: string; name: string; delta: string }
  | { type: 'call'; call: ToolCall }
  /** With the last of these marks another request for this step can join the answer, or begin it anew. See `ModelRequest.begun`. */
  | { type: 'begun'; mark: string }
  /** The provider compacted its own memory. */
  | { type: 'compacted' }
  /**
   * `doubt`: why the vendor's usage is not believed; `usage` is then empty. `broken`: the tool whose call did not arrive
   * whole, '' if its name is unknown. `ended`: the vendor's own word for an end that is none of the four. `session`: where
   * the session can be resumed; with `calls`, it then has all that was sent before this answer, if no results are to follow.
   */
  | {
      type: 'done';
      stop: 'end' | 'calls' | 'length' | 'refusal';
      usage: Usage;
      doubt?: string;
      broken?: string;
      ended?: string;
      session?: SessionMark;
      response?: ResponseName;
    }
  | { type: 'failed'; error: ModelFailure }
  | { type: 'aborted' };

/** The vendor's id of an answer, and the model that wrote it, which may differ from the requested one. */
export interface ResponseName {
  /** The model that wrote it. */
  model?: string | undefined;
  /** The vendor's id of the answer. */
  id?: string | undefined;
}

/** Why a call of a model failed. */
export interface ModelFailure {
  /** Code of the failure. */
  code: Extract<ErrorCode, `provider_${string}` | 'context_overflow'>;
  /** What happened, for people, without keys. */
  message: string;
  /** Delay that the vendor asked for. */
  retryAfterMs?: number;
  /** No server accepted the request, or the server is still starting. It may be available in minutes. */
  isAway?: boolean;
}

/** `warm`: the session was open in this process, at the right place. `rewound`: everything after the checkpoint was dropped. */
export type SessionChange = 'started' | 'warm' | 'resumed' | 'rewound';

/** A place in a provider's own memory of a conversation. Opaque to all but the adapter that made it. */
export interface SessionMark {
  /** The provider's id of the session. */
  id: string;
  /** End of the last answer that counts. A resume drops everything after it. '': the present end of the session. */
  checkpoint: string;
}

/**
 * The request to a session of a stateful provider. A turn that calls tools stays open in the provider: its stream ends with
 * `done` and `stop: 'calls'`, and the next request with the same `cacheKey` continues it with the results.
 */
export type SessionRequest =
  /** Begins a new session; `messages` are the whole prompt, baseline first. */
  | { kind: 'start' }
  /**
   * One new turn; `messages` are those that the session has not seen since the mark. They may have other roles than `user`:
   * the agent's own text and calls that the session lacks. With the checkpoint '' they are the whole prompt, as for `start`,
   * because the session was begun elsewhere.
   */
  | { kind: 'resume'; mark: SessionMark }
  /** `messages` are the results of the calls that ended the last stream, in order. */
  | { kind: 'continue' };

/** What a model is asked. */
export interface ModelRequest {
  /** Name of the model. */
  model: string;
  /** Leading system messages first; the last message is `user` or `tool`. */
  messages: readonly PromptMessage[];
  /**
   * Base64 bytes, by hash, of every image that a message names. Without `capabilities.images`, messages name no images and
   * describe in words what is not shown.
   */
  images?: ReadonlyMap<string, string>;
  /** The tools that it may call. */
  tools: readonly ToolSpec[];
  /** Indexes into `messages` after which an explicit cache breakpoint pays off. */
  breakpoints: readonly number[];
  /** Most tokens of the answer. */
  maxOutputTokens: number;
  /** Stable per tenant, conversation and agent: for vendors that route by cache key. */
  cacheKey: string;
  /** Set for stateful providers, except for `purpose: 'compaction'`, which must leave no trace in any session. */
  session?: SessionRequest;
  /**
   * Mark of the last `begun` of an earlier call for the same step, perhaps by a process that has died. Only with
   * `capabilities.joins`.
   */
  begun?: string;
  /** JSON schema (draft 2020-12) that the answer must fit, if the agent declares one. */
  replySchema?: Record<string, unknown>;
  /** Origin of the request. Recorded by fakes, never sent to a vendor. `call` counts the calls of this step, from 1. */
  trace: {
    conversation: string;
    agent: string;
    turn: TurnId;
    step: number;
    call: number;
    /** Index into `messages` of the first message that is new in this turn. */
    begins?: number;
    /** Default `turn`. */
    purpose?: 'compaction';
  };
}

/** What a provider can do. */
export interface ProviderCapabilities {
  /** The provider remembers the conversation itself and is sent only what is new. */
  sessionResumption: boolean;
  /** A session can return to an earlier mark. Without this, a session is abandoned when its turn breaks off. */
  rewind: boolean;
  /** A session can be copied. */
  fork: boolean;
  /** System messages may stand between other messages. */
  interleavedSystem: boolean;
  /** Whether models call tools. */
  toolCalling: boolean;
  /** Messages may contain images. */
  images: boolean;
  /** How the vendor caches the beginning of a prompt. */
  caching: 'none' | 'automatic' | 'breakpoints';
  /** Marks that the vendor's templates or client would read as their own: they are escaped. Default: none. */
  templateMarks?: readonly MarkFamily[];
  /** The vendor continues an answer after its request is lost, and a later request joins it. */
  joins?: true;
  /** The usage is the vendor's own count, so it may calibrate estimates. */
  reportsUsage: boolean;
}

/** Capabilities of a plain request-and-response provider; adapters override what differs. */
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

/** A provider of models: the port that all adapters implement. */
export interface Provider {
  /** Shown to people and in metrics. */
  readonly name: string;
  /** What it can do. */
  readonly capabilities: ProviderCapabilities;
  /** Where sessions are stored (machine and directories): elsewhere a session id has no meaning. */
  readonly home?: string;
  /** The working directory of the sessions of a cache key, if the provider has one. */
  readonly cwdOf?: (cacheKey: string) => string;
  /** The server that requests go to, if there is one. */
  readonly server?: { address: string; port: number };
  /** Why a tool cannot be offered to its models; null if it can. The troupe leaves out such a tool when it starts. */
  readonly toolProblem?: (tool: ToolSpec) => string | null;
  /** One call of the model, as a stream of events. */
  stream(request: ModelRequest, options: { signal: AbortSignal }): AsyncIterable<ModelEvent>;
  /** Abandons the open turn of this cache key. Its session stays usable by its marks. */
  leave?(cacheKey: string): void;
  /** Ends processes and connections. */
  close?(): Promise<void>;
}

/** Checks the shape, because a program may pass any value. */
export function isProvider(value: unknown): value is Provider {
  const { capabilities, stream } = Object(value) as { [field in keyof Provider]?: unknown };
  return typeof stream === 'function' && typeof capabilities === 'object' && capabilities !== null;
}

/** The agent that a provider is made for. */
export interface CustomAgent extends Sampling {
  /** Id of the agent. */
  id: string;
  /** Name of the model. */
  model: string;
  /** Most tokens of an answer. */
  maxOutputTokens: number;
  /** How much it reasons. Default: the vendor's. */
  effort?: Effort | undefined;
  /** Headers of `headers`, and those of `headersEnv` with their values. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** Further fields of the body of every request. Default: none. */
  providerOptions?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * One provider for all agents that name it, or a function that makes one for each of them; or a model or a vendor package of
 * the AI SDK. The agents name the models of a package.
 */
export type CustomProvider =
  | Provider
  | ((agent: CustomAgent) => Provider | AiSdkModel)
  | AiSdkModel
  | AiSdkVendor;

const FIRST_MS = 500;
const LIMIT_MS = 30_000;
/** Longest delay between tries while a server is away: short, so that its return is noticed soon. */
const AWAY_LIMIT_MS = 15_000;
const RETRY_AFTER_LIMIT_MS = 600_000;

/**
 * Delay in ms before the next try; null if another try cannot help. `tries` counts the calls so far, from 1. Half of the delay
 * is random, even after a vendor's retry-after: agents that were limited together must not return together.
 */
export function backoffMs(failure: ModelFailure, tries: number, random: () => number): number | null {
  if (policyOf(failure.code) !== 'retry') return null;
  const half =
    Math.min(failure.isAway ? AWAY_LIMIT_MS : LIMIT_MS, FIRST_MS * 2 ** Math.max(0, tries - 1)) / 2;
  const floor = Math.max(half, Math.min(failure.retryAfterMs ?? 0, RETRY_AFTER_LIMIT_MS));
  return Math.round(floor + random() * half);
}
