import type { Event } from '../../../src/events/index.ts';
import { api, streamOf } from './api.ts';
import { isErasure } from './live.ts';
import { readFrames } from './read-frames.ts';
import { messageOf } from '../shared/format.ts';
import { nextWrite, pause, untilSeen, whileSeen, withPlace } from './stream-place.ts';

const RECONNECT_MS = 1_000;

interface ThreadOptions {
  /** Number of events after which the reader must open the thread's own conversation. */
  most: number;
  /** Nothing more will come. */
  isOver: boolean;
  show: (events: readonly Event[]) => void;
  fail: (message: string) => void;
}

/** Shows the events of a thread, and new ones while it runs. Returns a function that stops this. */
export function followThread(thread: string, options: ThreadOptions): () => void {
  const over = new AbortController();
  void follow(thread, options, over.signal);
  return () => over.abort();
}

async function follow(
  thread: string,
  { most, isOver, show, fail }: ThreadOptions,
  signal: AbortSignal,
): Promise<void> {
  let events: readonly Event[] = [];
  const add = (more: readonly Event[]) => {
    if (signal.aborted) return;
    events = [...events, ...more].slice(0, most);
    show(events);
  };
  /** Resolves when the stream has ended, or when the events must be read again. */
  async function read(): Promise<void> {
    const seen = whileSeen(signal);
    try {
      await readStream(seen.signal);
    } finally {
      seen.end();
    }
  }
  async function readStream(ends: AbortSignal): Promise<void> {
    const response = await streamOf(thread, { after: events.at(-1)?.seq ?? 0, signal: ends });
    for await (const { event, data } of readFrames(response)) {
      const more = event === 'event' ? (JSON.parse(data) as Event) : null;
      // Text was erased, so the rest is read again.
      const isErased = more !== null && isErasure(more);
      if (event === 'reset' || isErased) events = [];
      if (isErased) return;
      if (more) add([more]);
      if (events.length >= most) return;
    }
  }
  while (!signal.aborted) {
    const written = nextWrite();
    try {
      const after = events.at(-1)?.seq ?? 0;
      add((await api.events(thread, { after, limit: most - events.length })).events);
      if (isOver || events.length >= most) return;
      await untilSeen(signal);
      await withPlace(read);
      if (events.length >= most) return;
    } catch (error) {
      if (signal.aborted) return;
      if (events.length === 0) return fail(messageOf(error));
    }
    await pause(RECONNECT_MS, AbortSignal.any([signal, written]));
  }
}
