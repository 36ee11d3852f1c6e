import { backOff, isTransient } from './retry.ts';
import type { ApiClient, StreamFrame } from './troupe.ts';

/** Options of `follow`. */
export interface FollowOptions {
  /** Seq of the last event that is known already. Default: 0, the beginning. */
  after?: number | undefined;
  /** Begins with so many of the newest events instead: 0 for those to come. */
  newest?: number | undefined;
  /** Ends the generator. */
  signal?: AbortSignal | undefined;
  /** Is told of each connection: true when the server has accepted it, false when it is lost. */
  onConnection?: ((isOpen: boolean) => void) | undefined;
}

/**
 * The frames of a conversation, over as many connections as it takes. Every event comes once, in order; after a `reset` those
 * of the new log. What running
 * turns have told comes again after a reconnect, from its index on. Throws what cannot be repeated, such as a refused key.
 */
export async function* follow(
  api: ApiClient,
  conversation: string,
  { after = 0, newest, signal = new AbortController().signal, onConnection }: FollowOptions,
): AsyncGenerator<StreamFrame, void> {
  let last = after;
  let isBegun = newest === undefined;
  const left = new AbortController();
  const ends = AbortSignal.any([signal, left.signal]);
  try {
    for (let failures = 0; !ends.aborted;) {
      try {
        const place = isBegun ? { after: last } : { newest };
        const frames = await api.events({ conversation, ...place }, ends);
        onConnection?.(true);
        for await (const frame of frames) {
          failures = 0;
          if (frame.type === 'event') {
            if (frame.event.seq <= last) continue;
            last = frame.event.seq;
            isBegun = true;
          }
          // Another log than before, from its beginning.
          if (frame.type === 'reset') last = 0;
          yield frame;
        }
      } catch (error) {
        if (ends.aborted) return;
        onConnection?.(false);
        if (!isTransient(error)) throw error;
        failures += 1;
        await backOff(failures, error, ends);
      }
    }
  } finally {
    left.abort();
  }
}
