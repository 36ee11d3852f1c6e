import type { Context } from 'hono';
import type { Clock } from '../base/clock.ts';
import type { Caller } from './caller.ts';
import { rateLimited } from './refusal.ts';

const STREAM_RETRY_MS = 5_000;
/** How often an open stream checks its caller, ms. With the cache of keys, the stream of a revoked key ends within 5 s. */
const CHECK_CALLER_MS = 2_500;
const OWNERS = { caller: 'one caller', tenant: 'one tenant', process: 'this process' };
const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  // A compressing proxy would hold events back until its buffer is full.
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
  // The connection ends with the stream, so that a closing server need not wait for its timeout.
  connection: 'close',
};

interface StreamOptions {
  /** Who asks for the stream. */
  caller: Caller;
  /** Source of time. */
  clock: Clock;
  /** Aborted when the process is about to end. */
  signal?: AbortSignal | undefined;
  /** Headers added to those of every event stream. */
  headers?: Readonly<Record<string, string>>;
  /** A place that is already held; it ends with the stream. Default: a new one. */
  place?: HeldPlace;
}

/** One of the places for requests that stay open. */
export interface HeldPlace {
  /** Aborted when the request has to end. */
  ends: AbortSignal;
  /** Gives it back. */
  end: () => void;
}

/** Silence after which a comment keeps the connection alive, ms. */
const HEARTBEAT_MS = 15_000;

/** Counts a long answer as one of the caller's streams, until `end`. Throws `rate_limited` if there are too many. */
function takePlace({ principal, traffic }: Pick<Caller, 'principal' | 'traffic'>): { end(): void } {
  const place = traffic.openStream(principal);
  if (!('full' in place)) return place;
  const message = `at most ${place.limit} open streams of ${OWNERS[place.full]}`;
  throw rateLimited(message, place.limit, STREAM_RETRY_MS);
}

/** The source, with a comment after each silence. */
export async function* withHeartbeats(
  source: AsyncGenerator<string, void>,
  { clock, ends }: { clock: Pick<Clock, 'sleep'>; ends: AbortSignal },
): AsyncGenerator<string, void> {
  try {
    let next = source.next();
    for (;;) {
      const came = ends.aborted ? await next : await orSilence(next, { clock, ends });
      if (came === null) {
        if (!ends.aborted) yield ': still here\n\n';
        continue;
      }
      if (came.done) return;
      yield came.value;
      next = source.next();
    }
  } finally {
    await source.return();
  }
}

/** Null if nothing came for a while. */
async function orSilence<T>(
  next: Promise<T>,
  { clock, ends }: { clock: Pick<Clock, 'sleep'>; ends: AbortSignal },
): Promise<T | null> {
  const heard = new AbortController();
  const silence = clock.sleep(HEARTBEAT_MS, AbortSignal.any([ends, heard.signal])).then(() => null);
  try {
    return await Promise.race([next, silence]);
  } finally {
    heard.abort();
  }
}

interface HoldOptions extends Pick<StreamOptions, 'clock' | 'signal'> {
  /** Who asks for the place. */
  caller: Pick<Caller, 'principal' | 'traffic' | 'isStillGood'>;
}

/** Takes a place as `takePlace` does. `ends` aborts when it is given back, and when the caller or the process has to end. */
export function holdPlace({ caller, clock, signal }: HoldOptions): HeldPlace {
  const { isStillGood } = caller;
  const place = takePlace(caller);
  const gone = new AbortController();
  if (isStillGood) void abortWhenUnknown(isStillGood, clock, gone);
  const end = () => {
    gone.abort();
    place.end();
  };
  return { ends: signal ? AbortSignal.any([signal, gone.signal]) : gone.signal, end };
}

/**
 * Runs `work` with a place that is taken first. A client repeats a request that was refused because of too many streams, so
 * nothing of it may be stored by then. If `work` fails, the place is given back here; otherwise the answer does it.
 */
export async function withPlace<T>(options: HoldOptions, work: (place: HeldPlace) => Promise<T>): Promise<T> {
  const place = holdPlace(options);
  try {
    return await work(place);
  } catch (error) {
    place.end();
    throw error;
  }
}

/**
 * Answers with a stream of server-sent events, for as long as its caller is known. Counts as one of the caller's streams: throws
 * `rate_limited` if there are too many. `write` yields the text; its signal aborts at the end, also when the reader leaves.
 */
export function openStream(
  context: Context,
  write: (ends: AbortSignal) => AsyncGenerator<string, void>,
  { caller, clock, signal, headers = {}, place }: StreamOptions,
): Response {
  // The body of a HEAD request is never read, so its stream would never end.
  if (context.req.method === 'HEAD') return context.body(null, 200, { ...HEADERS, ...headers });
  const { ends, end: close } = place ?? holdPlace({ caller, clock, signal });
  // Otherwise a client that does not read would hold its place forever.
  ends.addEventListener('abort', close, { once: true });
  const body = textStream(finallyDo(write(ends), close), {
    onCancel: close,
    ends,
    onUnread: () => destroyConnection(context),
  });
  return context.body(body, 200, { ...HEADERS, ...headers });
}

/** Aborts `open` when the caller's credential is no longer valid or its rights have changed. Ends when `open` is aborted. */
async function abortWhenUnknown(
  isStillGood: () => Promise<boolean>,
  clock: Pick<Clock, 'sleep'>,
  open: AbortController,
): Promise<void> {
  const { signal } = open;
  for (;;) {
    await clock.sleep(CHECK_CALLER_MS, signal);
    if (signal.aborted) return;
    // A failed lookup is repeated in the next round.
    if (!(await isStillGood().catch(() => true))) return open.abort();
  }
}

/** Without this the connection stays open until its client has read everything. */
function destroyConnection({ env }: Context): void {
  const { outgoing } = Object(env) as { outgoing?: { destroy?: () => void } };
  outgoing?.destroy?.();
}

/** Runs `close` at the end of the source. `onCancel` runs if the reader leaves before the source starts. */
async function* finallyDo(
  source: AsyncGenerator<string, void>,
  close: () => void,
): AsyncGenerator<string, void> {
  try {
    yield* source;
  } finally {
    close();
  }
}

interface TextStreamOptions {
  /** Runs when the reader has left. It must end a waiting source, because `return` waits for the next yield. */
  onCancel?: (() => void) | undefined;
  /** Aborts when nothing more may be sent; a waiting source must then end by itself. */
  ends?: AbortSignal | undefined;
  /** Runs if `ends` aborts while no read is pending: such a reader may never notice the end. */
  onUnread?: (() => void) | undefined;
}

/** Text as a response body, produced at the speed of its reader: nothing accumulates for a slow one. */
export function textStream(
  source: AsyncGenerator<string, void>,
  { onCancel, ends, onUnread }: TextStreamOptions = {},
): ReadableStream {
  const encoder = new TextEncoder();
  let isPulling = false;
  let isOver = false;
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        ends?.addEventListener(
          'abort',
          () => {
            if (isPulling || isOver) return;
            isOver = true;
            controller.close();
            void source.return();
            onUnread?.();
          },
          { once: true },
        );
      },
      async pull(controller) {
        isPulling = true;
        const next = await source.next();
        isPulling = false;
        if (isOver) return;
        if (!next.done && !ends?.aborted) return controller.enqueue(encoder.encode(next.value));
        isOver = true;
        controller.close();
        await source.return();
      },
      async cancel() {
        isOver = true;
        onCancel?.();
        await source.return();
      },
    },
    { highWaterMark: 0 },
  );
}
