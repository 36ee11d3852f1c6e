import { openStream } from './api.ts';
import { readFrames, type ServerFrame } from './read-frames.ts';
import { nextWrite, pause, untilSeen, whileSeen, withPlace } from './stream-place.ts';

const RECONNECT_MS = 1_000;
const LOOK_MS = 3_000;

/**
 * Follows a stream of the server, and reopens it when it is lost. `told` gets each frame, and null at each start, because the
 * stream does not repeat what happened before. In a tab without a place for a stream it gets null every few seconds. Returns a
 * function that ends the stream.
 */
export function followStream(
  query: Record<string, string>,
  told: (frame: ServerFrame | null) => void,
): () => void {
  const over = new AbortController();
  void follow(query, told, over.signal);
  return () => over.abort();
}

async function follow(
  query: Record<string, string>,
  told: (frame: ServerFrame | null) => void,
  signal: AbortSignal,
): Promise<void> {
  async function read(): Promise<void> {
    const seen = whileSeen(signal);
    try {
      const response = await openStream(query, seen.signal);
      told(null);
      for await (const frame of readFrames(response)) if (!signal.aborted) told(frame);
    } finally {
      seen.end();
    }
  }
  while (!signal.aborted) {
    const soon = AbortSignal.any([signal, nextWrite()]);
    await untilSeen(signal);
    try {
      const isStreamed = await withPlace(read);
      if (!isStreamed && !signal.aborted) {
        told(null);
        await pause(LOOK_MS, soon);
      }
    } catch {
      // The server cannot be reached, or has refused.
    }
    await pause(RECONNECT_MS, soon);
  }
}

/** Calls `act` once for all calls within this time, at its end. */
export function settled(ms: number, act: () => void): { soon: () => void; stop: () => void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return {
    soon() {
      timer ??= setTimeout(() => {
        timer = undefined;
        act();
      }, ms);
    },
    stop: () => clearTimeout(timer),
  };
}
