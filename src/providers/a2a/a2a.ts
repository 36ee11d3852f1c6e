import { createHash } from 'node:crypto';
import { flattenMessages } from '../cli/flatten-messages.ts';
import { guardedStream, type StreamWatch } from '../guard-stream.ts';
import { type ModelEvent, type ModelRequest, type Provider, STATELESS } from '../provider.ts';
import { replyLimits, type ReplyLimitSettings } from '../reply-limits.ts';
import { ownFailure, serverOf, vendorFetch } from '../vendor-fetch.ts';
import { findRemote, read as readAs, type RemoteAgent } from './client.ts';
import { TaskReader } from './task-reader.ts';
import { StreamAnswer, Task } from './wire.ts';

export interface A2aOptions {
  /** The agent card, or the address under which `/.well-known/agent-card.json` is. */
  url: string;
  apiKey?: string | undefined;
  replyLimits?: ReplyLimitSettings;
}

/** A message that was sent: its task, and how often the remote agent gave such a task up. */
interface Sent {
  task: string | null;
  tries: number;
}

interface Outgoing {
  messageId: string;
  role: 'ROLE_USER';
  parts: { text: string }[];
  contextId?: string;
  /** The task that waits for this message. */
  taskId?: string;
}

const MAX_SENT = 1_000;
const MAX_REJOINS = 3;
const CANCEL_MS = 5_000;

/**
 * A remote agent behind A2A 1.0, over its JSON-RPC. The remote agent's context is the session. Model and
 * `maxOutputTokens` have no effect, and the remote agent calls none of our tools.
 */
export function createA2a({ url, apiKey, ...options }: A2aOptions): Provider {
  const limits = replyLimits(options.replyLimits);
  const secrets = apiKey === undefined ? [] : [apiKey];
  const fetch = vendorFetch(limits);
  const sent = new Map<string, Sent>();

  /** The messages sent last are kept. */
  function recall(name: string): Sent {
    const known = sent.get(name) ?? { task: null, tries: 0 };
    sent.delete(name);
    sent.set(name, known);
    for (const oldest of sent.keys()) if (sent.size > MAX_SENT) sent.delete(oldest);
    return known;
  }

  async function* read(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    const remote = await findRemote({ url, apiKey, fetch }, watch.signal);
    watch.touch();
    const name = nameOf(request);
    const known = recall(name);
    const isResumed = request.session?.kind === 'resume' && request.session.mark.checkpoint !== '';
    const reader = new TaskReader(isResumed ? 'resumed' : 'started', known.task);
    const cancel = () => {
      if (reader.isOver || reader.task === null) return;
      giveUp(known);
      remote.call('CancelTask', { id: reader.task }, AbortSignal.timeout(CANCEL_MS)).catch(() => undefined);
    };
    watch.signal.addEventListener('abort', cancel, { once: true });
    try {
      for await (const event of answer(remote, messageOf(request, `${name}-${known.tries}`), reader, watch)) {
        // What still comes after an abort is of the cancelled task.
        if (!watch.signal.aborted) known.task = reader.task;
        if (reader.isBroken) giveUp(known);
        if (event.type !== 'session' || request.session) yield event;
      }
    } catch (thrown) {
      watch.signal.removeEventListener('abort', cancel);
      // An aborted task is cancelled. One that is still worked on is joined again by the next try, which must find it.
      if (!watch.signal.aborted)
        known.task = ownFailure(thrown)?.code === 'provider_session_lost' ? null : reader.task;
      throw thrown;
    }
  }

  return {
    name: 'a2a',
    capabilities: {
      ...STATELESS,
      sessionResumption: true,
      toolCalling: false,
      caching: 'none',
      reportsUsage: false,
    },
    home: url,
    server: serverOf(url),
    stream: guardedStream({ limits, remembers: true, secrets, read }),
  };
}

function giveUp(known: Sent): void {
  known.task = null;
  known.tries += 1;
}

/** Sends the message, or joins the task that it began. A cut stream is joined again. */
async function* answer(
  remote: RemoteAgent,
  message: Outgoing,
  reader: TaskReader,
  { signal, touch }: StreamWatch,
): AsyncGenerator<ModelEvent> {
  if (message.taskId !== undefined && reader.task === null)
    reader.skip(await taskOf(remote, message.taskId, signal));
  for (let rejoins = 0; !reader.isOver && rejoins <= MAX_REJOINS; rejoins += 1) {
    try {
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
      if (reader.task === null) return;
    } catch (thrown) {
      if (ownFailure(thrown) || signal.aborted || reader.task === null || rejoins === MAX_REJOINS)
        throw thrown;
    }
  }
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

/** The same for every try of a step, so that neither we nor the remote agent take it for a new message. */
function nameOf({ cacheKey, trace, session }: ModelRequest): string {
  const { turn, step, purpose } = trace;
  const parts = JSON.stringify([cacheKey, turn, step, purpose, session]);
  return createHash('sha256').update(parts).digest('hex').slice(0, 32);
}

function messageOf({ messages, session }: ModelRequest, messageId: string): Outgoing {
  const { system, texts } = flattenMessages(messages);
  const all = system === '' ? texts : [system, ...texts];
  const mark = session?.kind === 'resume' && session.mark.checkpoint !== '' ? session.mark : null;
  const taskId = mark?.checkpoint.slice('task:'.length) ?? '';
  return {
    messageId,
    role: 'ROLE_USER',
    parts: all.map((text) => ({ text })),
    ...(mark && { contextId: mark.id }),
    ...(taskId !== '' && { taskId }),
  };
}
