import type { Usage } from '../events/index.ts';
import type { ModelFailure } from '../providers/provider.ts';

/** What a vendor's server may answer with; the others are found out on our side. */
export type VendorFailure = Exclude<
  ModelFailure['code'],
  | 'provider_session_lost'
  | 'provider_unusable'
  | 'provider_invalid_reply'
  | 'provider_redirected'
  | 'provider_reply_too_long'
>;

/** What a fake vendor answers, in no vendor's words: each fake turns it into the wire format of its own. */
export interface FakeReply {
  text?: string;
  /** What the answer says of the model that gave it. Default the one that was asked for. */
  model?: string;
  reasoning?: string;
  calls?: readonly { id?: string; name: string; args: string }[];
  /** Characters per delta, of text and of call arguments. Default 8. */
  chunk?: number;
  /** Why the model stopped; by default `calls` where there are calls, else `end`. */
  stop?: 'end' | 'calls' | 'length' | 'refusal';
  /** Null sends none. */
  usage?: Usage | null;
  /** Milliseconds before every chunk. */
  delayMs?: number;
  /** An error instead of an answer, or, with `after`, as an event after so many chunks of it. */
  error?: { code: VendorFailure; message?: string; retryAfter?: string; after?: number };
  /** Any response at all, instead of an answer. */
  raw?: { status: number; headers?: Record<string, string>; body: string | Uint8Array };
  /** Stops after so many chunks of content: `end` politely, `cut` the connection, `reset` it, or `hang`. */
  breaks?: { after: number; how: 'end' | 'cut' | 'reset' | 'hang' };
  /** Never answers. */
  hang?: boolean;
}

export interface FakeRequest {
  /** From 1. */
  number: number;
  method: string;
  path: string;
  headers: Record<string, string | undefined>;
  body: unknown;
  /** Resolves when the client has closed the connection or has been answered. */
  gone: Promise<void>;
}

export type FakeHandler = (request: FakeRequest) => FakeReply | Promise<FakeReply>;

/** The pieces of an answer, each as it goes over the wire. Breaks count `content` only. */
export interface FakeFrames {
  head: string[];
  content: string[];
  tail: string[];
}

export interface FakeFailure {
  status: number;
  body: unknown;
}

export const FAKE_USAGE: Usage = { input: 12, output: 7, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** The text in pieces that never cut a surrogate pair. */
export function pieces(text: string, size = 8): string[] {
  const points = Array.from(text);
  const count = Math.ceil(points.length / size);
  return Array.from({ length: count }, (_, i) => points.slice(i * size, (i + 1) * size).join(''));
}

export function sse(data: unknown, event?: string): string {
  return `${event ? `event: ${event}\n` : ''}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}
