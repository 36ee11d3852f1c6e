import {
  type Clock,
  guardedStream,
  type ModelEvent,
  type ModelRequest,
  ownFailure,
  type Provider,
  replyLimits,
  type ReplyLimitSettings,
  serverOf,
  type SessionChange,
  STATELESS,
  type StreamWatch,
  systemClock,
  vendorFetch,
} from '../troupe.ts';
import type { CardKey } from './card-keys.ts';
import { findRemote, read as readAs, type RemoteAgent } from './client.ts';
import { messageOf, nameOf, type Outgoing } from './outgoing.ts';
import { TaskReader } from './task-reader.ts';
import { StreamAnswer, Task } from './wire.ts';

/** A remote agent. */
export interface A2aOptions {
  /** The agent card, or the address under which `/.well-known/agent-card.json` is. */
  url: string;
  /** Bearer token. */
  apiKey?: string | undefined;
  /** Public keys of which one has signed the card. Default: a card need not be signed. */
  cardKeys?: readonly CardKey[] | undefined;
  /** Default: the system's. */
  clock?: Pick<Clock, 'sleep'>;
  /** Limits of the size and duration of an answer. */
  replyLimits?: ReplyLimitSettings;
}

/** A message that was sent: its task, and how often the remote agent gave such a task up. */
interface Sent {
  task: string | null;
  tries: number;
}

const MAX_SENT = 1_000;
/** Without a word in between. */
const MAX_REJOINS = 5;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;
const CANCEL_MS = 5_000;

/**
 * A remote agent behind A2A 1.0, over its JSON-RPC. The remote agent's context is the session. Model and
 * `maxOutputTokens` have no effect, and the remote agent calls none of our tools.
 */
export function createA2a({ url, apiKey, cardKeys, clock = systemClock, ...options }: A2aOptions): Provider {
  const limits = replyLimits(options.replyLimits);
  const secrets = apiKey === undefined ? [] : [apiKey];
  const fetch = vendorFetch(limits);
  const sent = new Map<string, Sent>();

  /** The messages sent last are kept. */
  function recall(name: string, { begun }: ModelRequest): Sent {
    const known = sent.get(name) ?? sentIn(begun);
    sent.delete(name);
    sent.set(name, known);
    for (const oldest of sent.keys()) if (sent.size > MAX_SENT) sent.delete(oldest);
    return known;
  }

  async function* read(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    const remote = await findRemote({ url, apiKey, cardKeys, fetch }, watch.signal);
    watch.touch();
    const name = nameOf(request);
    const known = recall(name, request);
    const reader = new TaskReader(changeOf(request, known), known.task);
    let told = request.begun ?? markOf({ task: null, tries: 0 });
    function* news(): Generator<ModelEvent> {
      const mark = markOf(known);
      if (mark !== told) yield { type: 'begun', mark };
      told = mark;
    }
    const cancel = () => {
      if (reader.isOver || reader.task === null || goesOn(watch.signal)) return;
      giveUp(known);
      remote.call('CancelTask', { id: reader.task }, AbortSignal.timeout(CANCEL_MS)).catch(() => undefined);
    };
    watch.signal.addEventListener('abort', cancel, { once: true });
    const message = messageOf(request, `${name}-${known.tries}`, remote);
    try {
      for await (const event of answer(remote, message, reader, { ...watch, clock })) {
        // What still comes after an abort is of the cancelled task.
        if (!watch.signal.aborted) known.task = reader.task;
        if (reader.isBroken) giveUp(known);
        if (event.type === 'session' && request.session) yield event;
        yield* news();
        if (event.type !== 'session') yield event;
      }
    } catch (thrown) {
      watch.signal.removeEventListener('abort', cancel);
      // An aborted task is cancelled. One that is still worked on is joined again by the next try, which must find it.
      if (!watch.signal.aborted) known.task = reader.task;
      if (ownFailure(thrown)?.code === 'provider_session_lost') giveUp(known);
      yield* news();
      throw thrown;
    }
  }

  return {
    name: 'a2a',
    capabilities: {
      ...STATELESS,
      sessionResumption: true,
      joins: true,
      images: true,
      toolCalling: false,
      caching: 'none',
      reportsUsage: false,
    },
    home: url,
    server: serverOf(url),
    stream: guardedStream({ name: 'a2a', limits, remembers: true, secrets, read }),
  };
}

function changeOf({ session }: ModelRequest, { task }: Sent): SessionChange {
  const isResumed = session?.kind === 'resume' && session.mark.checkpoint !== '';
  return isResumed || task !== null ? 'resumed' : 'started';
}

function giveUp(known: Sent): void {
  known.task = null;
  known.tries += 1;
}

/** Whether another process, or this one after a restart, goes on with the turn whose request ends. */
function goesOn(signal: AbortSignal): boolean {
  const { code } = Object(signal.reason) as { code?: unknown };
  return code === 'lease_lost' || code === 'shutting_down';
}

function markOf({ task, tries }: Sent): string {
  return `${tries}:${task ?? ''}`;
}

function sentIn(mark = '0:'): Sent {
  const place = mark.indexOf(':');
  return { tries: Number(mark.slice(0, place)), task: mark.slice(place + 1) || null };
}

interface AnswerParts extends Pick<StreamWatch, 'signal' | 'touch'> {
  clock: Pick<Clock, 'sleep'>;
}

/** Sends the message, or joins the task that it began. A cut stream is joined again, and a task without a stream looked at. */
async function* answer(
  remote: RemoteAgent,
  message: Outgoing,
  reader: TaskReader,
  { signal, touch, clock }: AnswerParts,
): AsyncGenerator<ModelEvent> {
  if (message.taskId !== undefined && reader.task === null)
    reader.skip(await taskOf(remote, message.taskId, signal));
  for (let rejoins = 0; !reader.isOver; rejoins += 1) {
    if (rejoins > 0) await clock.sleep(pauseMs(rejoins), signal);
    touch();
    try {
      for await (const event of hear(remote, message, reader, { signal, touch })) {
        if (event.type === 'text') rejoins = 0;
        yield event;
      }
      if (reader.task === null || (remote.streams && rejoins === MAX_REJOINS)) return;
    } catch (thrown) {
      if (ownFailure(thrown) || signal.aborted || reader.task === null || rejoins >= MAX_REJOINS)
        throw thrown;
    }
  }
}

async function* hear(
  remote: RemoteAgent,
  message: Outgoing,
  reader: TaskReader,
  { signal, touch }: Omit<AnswerParts, 'clock'>,
): AsyncGenerator<ModelEvent> {
  if (reader.task !== null) {
    // A task that is over cannot be subscribed to.
    yield* reader.snapshot(await taskOf(remote, reader.task, signal));
    if (reader.isOver) return;
  }
  for await (const each of await updates(remote, message, reader.task, signal)) {
    touch();
    yield* reader.read(readAs(StreamAnswer, each, 'an update'));
    if (reader.isOver) return;
  }
}

function pauseMs(rejoins: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** (rejoins - 1), LONGEST_PAUSE_MS);
}

async function taskOf(remote: RemoteAgent, id: string, signal: AbortSignal): Promise<Task> {
  return readAs(Task, await remote.call('GetTask', { id }, signal), 'the task');
}

async function updates(
  remote: RemoteAgent,
  message: Outgoing,
  task: string | null,
  signal: AbortSignal,
): Promise<AsyncIterable<unknown> | Iterable<unknown>> {
  if (task !== null) return remote.streams ? remote.stream('SubscribeToTask', { id: task }, signal) : [];
  if (remote.streams) return remote.stream('SendStreamingMessage', { message }, signal);
  return [await remote.call('SendMessage', { message }, signal)];
}
