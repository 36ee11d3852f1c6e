import { openStream } from './api.ts';
import { readFrames, type ServerFrame } from './read-frames.ts';

const RECONNECT_MS = 1_000;

/**
 * Follows a stream of the server, and opens it again when it is lost. `told` gets each frame, and null at each beginning:
 * what has happened before is not told. Returns a function that ends it.
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
  while (!signal.aborted) {
    try {
      const response = await openStream(query, signal);
      told(null);
      for await (const frame of readFrames(response)) if (!signal.aborted) told(frame);
    } catch {
      // The server cannot be reached, or has refused.
    }
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
  }
}

/** Calls `act` once for all calls within the time, at its end. */
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
