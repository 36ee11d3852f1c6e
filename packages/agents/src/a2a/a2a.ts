import { createHash } from 'node:crypto';
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
  type ModelFailure,
  NO_USAGE,
  type PromptMessage,
} from '../troupe.ts';
import {
  type CardKey,
  findRemote,
  read as readAs,
  type RemoteAgent,
  StreamAnswer,
  Task,
  type Artifact,
  type Status,
  textOfParts,
} from './client.ts';
import { flattenMessages } from '../flatten-messages.ts';

/** A remote agent. */
export interface A2aOptions {
  /** URL of the agent card, or of the server that has the card at `/.well-known/agent-card.json`. */
  url: string;
  /** Bearer token. */
  apiKey?: string | undefined;
  /** Public keys, one of which must have signed the card. Default: a card need not be signed. */
  cardKeys?: readonly CardKey[] | undefined;
  /** Source of time. Default: the system clock. */
  clock?: Pick<Clock, 'sleep'>;
  /** Limits of the size and duration of an answer. */
  replyLimits?: ReplyLimitSettings;
}

/** A message that was sent: its task, and how often the remote agent gave up such a task. */
interface Sent {
  task: string | null;
  tries: number;
}

const MAX_SENT = 1_000;
/** Most attempts to rejoin a task without any text in between. */
const MAX_REJOINS = 5;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;
const CANCEL_MS = 5_000;

/**
 * A remote agent behind A2A 1.0, over its JSON-RPC. The remote agent's context is the session. `model` and `maxOutputTokens`
 * have no effect, and the remote agent calls none of our tools.
 */
export function createA2a({ url, apiKey, cardKeys, clock = systemClock, ...options }: A2aOptions): Provider {
  const limits = replyLimits(options.replyLimits);
  const secrets = apiKey === undefined ? [] : [apiKey];
  const fetch = vendorFetch(limits);
  const sent = new Map<string, Sent>();

  /** The most recently sent messages are kept. */
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
        // Updates after an abort belong to the cancelled task.
        if (!watch.signal.aborted) known.task = reader.task;
        if (reader.isBroken) giveUp(known);
        if (event.type === 'session' && request.session) yield event;
        yield* news();
        if (event.type !== 'session') yield event;
      }
    } catch (thrown) {
      watch.signal.removeEventListener('abort', cancel);
      // An aborted task is cancelled. The next try joins a task that is still running, so its id must be known.
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

/** Whether another process, or this one after a restart, will continue the turn whose request ends. */
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

/**
 * Sends the message, or joins the task that it began. Rejoins a task whose stream was cut, and reads the state of a task that
 * has no stream.
 */
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
    // A task that has ended cannot be subscribed to.
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

/** States that a task does not leave without a new message, each with the failure that it means. */
const FAILED: Readonly<Record<string, ModelFailure['code']>> = {
  TASK_STATE_FAILED: 'provider_failed',
  TASK_STATE_REJECTED: 'provider_refused',
  TASK_STATE_CANCELED: 'provider_refused',
  TASK_STATE_AUTH_REQUIRED: 'provider_auth',
};

/** Turns the updates of a task, some of which may come twice, into the events of one answer. */
class TaskReader {
  /** The task of the answer, once it is known. */
  task: string | null;
  isOver = false;
  /** The remote agent gave up the task, so another try needs a new message. */
  isBroken = false;
  readonly #said = new Map<string, string>();
  readonly #change: SessionChange;
  #context: string | null = null;
  #hasSpoken = false;

  constructor(change: SessionChange, task: string | null) {
    this.#change = change;
    this.task = task;
  }

  *read({ task, message, statusUpdate, artifactUpdate }: StreamAnswer): Generator<ModelEvent> {
    if (task) yield* this.snapshot(task);
    else if (message) {
      yield* this.#began(message.contextId);
      yield* this.#say('message', textOfParts(message.parts));
      yield this.#done('');
    } else if (artifactUpdate) {
      this.task = artifactUpdate.taskId;
      yield* this.#began(artifactUpdate.contextId);
      yield* this.#artifact(artifactUpdate.artifact, artifactUpdate.append);
    } else if (statusUpdate) {
      this.task = statusUpdate.taskId;
      yield* this.#began(statusUpdate.contextId);
      yield* this.#status(statusUpdate.status);
    }
  }

  /** The current state of the task. Text that was yielded before is not repeated. */
  *snapshot({ id, contextId, artifacts, status }: Task): Generator<ModelEvent> {
    this.task = id;
    yield* this.#began(contextId);
    for (const artifact of artifacts) yield* this.#artifact(artifact, false);
    yield* this.#status(status);
  }

  /** Skips the artifacts of a task that waits for an answer, because they came with its question. */
  skip({ artifacts, status }: Task): void {
    if (status.state !== 'TASK_STATE_INPUT_REQUIRED') return;
    for (const { artifactId, parts } of artifacts) this.#said.set(artifactId, textOfParts(parts));
  }

  *#began(context: string | undefined): Generator<ModelEvent> {
    if (this.#context !== null || context === undefined || context === '') return;
    this.#context = context;
    yield { type: 'session', change: this.#change, id: context };
  }

  *#artifact({ artifactId, parts }: Artifact, append: boolean): Generator<ModelEvent> {
    const before = this.#said.get(artifactId) ?? '';
    const text = textOfParts(parts);
    if (append) yield* this.#say(artifactId, text);
    // Yielded text cannot be taken back, so a replacement that does not continue it is yielded in full.
    else if (text.startsWith(before)) yield* this.#say(artifactId, text.slice(before.length));
    else if (!before.startsWith(text)) yield* this.#say(artifactId, `\n\n${text}`);
  }

  *#say(id: string, delta: string): Generator<ModelEvent> {
    if (delta === '') return;
    // Each artifact is a separate document.
    const isNext = this.#hasSpoken && !this.#said.has(id);
    this.#hasSpoken = true;
    this.#said.set(id, (this.#said.get(id) ?? '') + delta);
    yield { type: 'text', delta: isNext ? `\n\n${delta}` : delta };
  }

  *#status({ state, message }: Status): Generator<ModelEvent> {
    if (this.isOver) return;
    const text = message ? textOfParts(message.parts) : '';
    const code = Object.hasOwn(FAILED, state) ? FAILED[state] : undefined;
    if (code) {
      this.isOver = true;
      this.isBroken = true;
      const word = state.slice('TASK_STATE_'.length).toLowerCase().replaceAll('_', ' ');
      const why = text === '' ? '' : `: ${text}`;
      yield { type: 'failed', error: { code, message: `the task of the remote agent is ${word}${why}` } };
    } else if (state === 'TASK_STATE_INPUT_REQUIRED') {
      yield* this.#say('question', text);
      yield this.#done(this.task ?? '');
    } else if (state === 'TASK_STATE_COMPLETED') {
      // If there are artifacts, the last message is only a remark about them.
      if (!this.#hasSpoken) yield* this.#say('message', text);
      yield this.#done('');
    } else if (text !== '') yield { type: 'thinking', delta: `${text}\n` };
  }

  /** `open`: id of the task that waits for the next message. */
  #done(open: string): ModelEvent {
    this.isOver = true;
    const session = this.#context === null ? null : { id: this.#context, checkpoint: `task:${open}` };
    return { type: 'done', stop: 'end', usage: NO_USAGE, ...(session && { session }) };
  }
}

type OutgoingPart = { text: string } | { raw: string; mediaType: string };

interface Outgoing {
  messageId: string;
  role: 'ROLE_USER';
  parts: OutgoingPart[];
  contextId?: string;
  /** Id of the task that waits for this message. */
  taskId?: string;
}

/**
 * The id of the message. It is the same for every try of a step, in every process, so that neither side takes a retry for a
 * new message. A turn that takes further events into the step gets another id.
 */
function nameOf({ cacheKey, trace, messages }: ModelRequest): string {
  const { turn, step, purpose } = trace;
  const last = Math.max(0, ...messages.flatMap(({ seqs }) => seqs));
  const parts = JSON.stringify([cacheKey, turn, step, purpose, last]);
  return createHash('sha256').update(parts).digest('hex').slice(0, 32);
}

function messageOf(
  { messages, session, images }: ModelRequest,
  messageId: string,
  remote: Pick<RemoteAgent, 'takes'>,
): Outgoing {
  const { system } = flattenMessages(messages);
  const others = messages.filter(({ role }) => role !== 'system');
  const parts = others.flatMap((message) => partsOf(message, images, remote));
  const mark = session?.kind === 'resume' && session.mark.checkpoint !== '' ? session.mark : null;
  const taskId = mark?.checkpoint.slice('task:'.length) ?? '';
  return {
    messageId,
    role: 'ROLE_USER',
    parts: system === '' ? parts : [{ text: system }, ...parts],
    ...(mark && { contextId: mark.id }),
    ...(taskId !== '' && { taskId }),
  };
}

function partsOf(
  message: PromptMessage,
  bytes: ModelRequest['images'],
  { takes }: Pick<RemoteAgent, 'takes'>,
): OutgoingPart[] {
  const parts: OutgoingPart[] = flattenMessages([message]).texts.map((text) => ({ text }));
  for (const { hash, mediaType } of message.role === 'user' ? (message.images ?? []) : []) {
    const raw = bytes?.get(hash);
    if (raw === undefined) continue;
    if (takes(mediaType)) parts.push({ raw, mediaType });
    else parts.push({ text: `[the remote agent takes no ${mediaType}: an image is left out]` });
  }
  return parts;
}
