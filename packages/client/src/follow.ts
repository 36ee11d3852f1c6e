import { type ApiClient, type Event, type StreamFrame, TroupeError } from './troupe.ts';

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5_000;

/**
 * Repeats `attempt` after transient failures until `signal` aborts, then throws `aborted`. Only for requests that may be repeated.
 */
export async function untilDone<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    if (signal.aborted) throw aborted(signal);
    try {
      return await attempt();
    } catch (error) {
      if (signal.aborted) throw aborted(signal);
      if (!isTransient(error)) throw error;
      await backOff(failures, error, signal);
    }
  }
}

export function aborted({ reason }: AbortSignal): TroupeError {
  const message = 'the wait was ended; the agents go on';
  return new TroupeError('aborted', message, {}, { cause: reason });
}

/** Whether the same request may succeed later. */
function isTransient(error: unknown): boolean {
  if (!(error instanceof TroupeError)) return false;
  return (
    error.policy === 'retry' ||
    error.code === 'shutting_down' ||
    error.data['status'] === 429 ||
    // A proxy answers for a server that is restarting.
    [502, 503, 504].includes(Number(error.data['status']))
  );
}

/** Waits before retry number `failures`, from 1: longer each time, up to 5 s, and partly random. */
async function backOff(failures: number, error: unknown, signal: AbortSignal): Promise<void> {
  const grown = Math.min(FIRST_WAIT_MS * 2 ** (failures - 1), LONGEST_WAIT_MS);
  const asked = error instanceof TroupeError ? Number(error.data['retryAfterMs']) || 0 : 0;
  const ms = Math.max(grown * (0.5 + Math.random() / 2), Math.min(asked, LONGEST_WAIT_MS));
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
  });
}

/** Options of `follow`. */
export interface FollowOptions {
  /** Seq of the last event that is already known. Default: 0, the beginning. */
  after?: number | undefined;
  /** Begins with this many of the newest events instead; 0 begins with future events. */
  newest?: number | undefined;
  /** Ends the generator. */
  signal?: AbortSignal | undefined;
  /** Called at each change of the connection: true when the server has accepted it, false when it is lost. */
  onConnection?: ((isOpen: boolean) => void) | undefined;
}

/**
 * The frames of a conversation, over as many connections as needed. Every event comes once, in order; after a `reset` the
 * events of the new log follow. The live text of running turns is repeated after a reconnect, from its index on. Throws errors
 * that a retry cannot help, such as a refused key.
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
          // A new log replaced the previous one; it is read from its beginning.
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

/** A change of the text that agents are writing. All texts since the last `void` of a turn, joined, are the turn's text so far. */
export type Words =
  /** The next piece of this agent's text. */
  | { type: 'text'; agent: string; turn: string; text: string }
  /** The text so far of this model answer no longer counts: it begins anew. */
  | { type: 'void'; agent: string; turn: string };

interface Spoken {
  place: string;
  said: string;
}

/**
 * Finds the new text in frames, over reconnects and repeated attempts. When the log has an answer, text that was missed comes
 * first, so that all of it comes exactly once.
 */
export function words(): (frame: StreamFrame) => Words[] {
  const turns = new Map<string, Spoken>();

  function ofEvent({ kind, turn, author, body }: Event): Words[] {
    if (turn === undefined || author.kind !== 'agent') return [];
    const agent = author.id;
    const spoken = turns.get(turn);
    if (kind === 'message' || kind === 'step') {
      turns.delete(turn);
      const { content } = body;
      const said = spoken?.said ?? '';
      if (content.startsWith(said)) return told(agent, turn, content.slice(said.length));
      return [{ type: 'void', agent, turn }, ...told(agent, turn, content)];
    }
    if (kind !== 'turn.failed' && kind !== 'turn.aborted') return [];
    turns.delete(turn);
    return spoken?.said ? [{ type: 'void', agent, turn }] : [];
  }

  return (frame) => {
    if (frame.type === 'event') return ofEvent(frame.event);
    if (frame.type !== 'text') return [];
    const { agent, turn, attempt, step, round, index, text } = frame;
    const place = `${attempt} ${step} ${round}`;
    const known = turns.get(turn);
    const isNew = known?.place !== place;
    const spoken = isNew ? { place, said: '' } : known;
    turns.set(turn, spoken);
    const start: Words[] = isNew && known?.said ? [{ type: 'void', agent, turn }] : [];
    // A gap: text in between was missed, and will come from the log.
    if (index > spoken.said.length) return start;
    const more = text.slice(spoken.said.length - index);
    spoken.said += more;
    return [...start, ...told(agent, turn, more)];
  };
}

function told(agent: string, turn: string, text: string): Words[] {
  return text === '' ? [] : [{ type: 'text', agent, turn, text }];
}
