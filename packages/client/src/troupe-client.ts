import { aborted, follow, type FollowOptions, untilDone, type Words, words } from './follow.ts';
import {
  type Answer,
  type ApiClient,
  type ApiClientOptions,
  type Author,
  createClient,
  type Event,
  type Input,
  type StreamFrame,
} from './troupe.ts';

/** Options of `createTroupeClient`. */
export type ClientOptions = Pick<ApiClientOptions, 'url' | 'token'>;
/** A message: its text, or an object with addressees, your own id, attachments and more. */
export type NewMessage =
  | string
  | (Omit<Input<'POST /api/conversations/{conversation}/events'>['body'], 'author'> & {
      author?: Event['author'] | undefined;
    });
/** The result of a message, like that of `troupe.ask`, but without the events. */
export type ToldAnswer = NonNullable<Answer<'GET /api/conversations/{conversation}/answer'>['answer']>;
/** A delegation, question or approval. */
export type Task = Answer<'GET /api/conversations/{conversation}/tasks'>['tasks'][number];
/** Options of requests. */
export interface AskOptions {
  /** Ends the wait with the error `aborted`. The agents continue. */
  signal?: AbortSignal | undefined;
}
/** Options of commands. */
export interface ActOptions extends AskOptions {
  /** The person who acts, if the key belongs to a program that acts for many. Default: the author of the key. */
  author?: Author | undefined;
}

/**
 * A troupe at a URL. Transient failures are retried until the signal aborts, and a message is stored only once however often
 * it is sent. Methods throw `TroupeError`: its `policy` tells what to do, and `data.refused` has codes of HTTP.
 *
 *     const troupe = createTroupeClient({ url: 'http://127.0.0.1:4600' });
 *     const { text } = await troupe.ask('support-17', 'Where is my parcel?');
 */
export interface TroupeClient {
  /** Every route of the API, typed by its declaration. */
  readonly api: ApiClient;
  /** Stores a message exactly once, and resolves to its event. */
  send(conversation: string, message: NewMessage, options?: AskOptions): Promise<Event>;
  /** Stores a message, waits for the answer, and resolves to it. */
  ask(conversation: string, message: NewMessage, options?: AskOptions): Promise<ToldAnswer>;
  /** Like `ask`, but yields text as agents write it, and events as they are stored. The answer is its return value. */
  stream(
    conversation: string,
    message: NewMessage,
    options?: AskOptions,
  ): AsyncGenerator<Words | { type: 'event'; event: Event }, ToldAnswer>;
  /** Events and live notes of a conversation, without end, over reconnects. Each event comes once, in order. */
  follow(conversation: string, options?: FollowOptions): AsyncGenerator<StreamFrame, void>;
  /**
   * Delegations, questions and approvals. `open`: only those that have not ended. `decidable` of an approval or a question
   * tells whether this key and `author` may decide or answer it now.
   */
  tasks(conversation: string, options?: ActOptions & { open?: boolean | undefined }): Promise<Task[]>;
  /** The bytes of the attachment with the given `index`, from 0, of the message at `seq`. */
  attachment(conversation: string, seq: number, index: number, options?: AskOptions): Promise<Blob>;
  /** Decides an approval. The arguments of `task` are those that the person saw: if the call has others, the decision is refused. */
  decide(
    conversation: string,
    task: Pick<Task, 'id' | 'argsHash'>,
    decision: { approved: boolean; note?: string | undefined },
    options?: ActOptions,
  ): Promise<void>;
  /** Answers a question. */
  answer(conversation: string, task: Pick<Task, 'id'>, content: string, options?: ActOptions): Promise<void>;
  /** Stops a running turn. */
  abort(turn: string, options?: ActOptions): Promise<void>;
}

const USER = { kind: 'user', id: 'user', name: 'User' } as const;
type MessageBody = Input<'POST /api/conversations/{conversation}/events'>['body'];
type CommandBody = Input<'POST /api/commands'>['body'];

/** A client of a troupe, for browsers and Node. Opens no connection by itself. */
export function createTroupeClient({ url, token }: ClientOptions): TroupeClient {
  const api = createClient({ url, token });

  async function send(c: string, message: NewMessage, { signal = never() }: AskOptions = {}): Promise<Event> {
    const given = typeof message === 'string' ? { content: message } : message;
    // The server fills in the author of a key.
    const author = given.author ?? (token === undefined ? USER : undefined);
    const body = { ...given, id: given.id ?? crypto.randomUUID(), author } as MessageBody;
    const input = { params: { conversation: c }, body, signal };
    return (
      await untilDone(signal, () => api.request('POST /api/conversations/{conversation}/events', input))
    ).event;
  }

  return {
    api,
    send,
    async ask(c, message, { signal = never() } = {}) {
      const { seq } = await send(c, message, { signal });
      return answerTo(api, c, seq, signal);
    },
    async *stream(c, message, { signal = never() } = {}) {
      const { seq } = await send(c, message, { signal });
      return yield* partsOf(api, c, seq, signal);
    },
    follow: (c, options = {}) => follow(api, c, options),
    async tasks(c, { open, author, signal = never() } = {}) {
      const input = { params: { conversation: c }, query: { open, as: author?.id }, signal };
      const { tasks } = await untilDone(signal, () =>
        api.whole('GET /api/conversations/{conversation}/tasks', 'tasks', input),
      );
      return tasks;
    },
    async attachment(c, seq, index, { signal = never() } = {}) {
      const input = { params: { conversation: c }, query: { seq, index }, signal };
      const response = await untilDone(signal, () =>
        api.open('GET /api/conversations/{conversation}/attachment', input),
      );
      return response.blob();
    },
    ...commandsOf(api),
  };
}

async function answerTo(api: ApiClient, c: string, seq: number, signal: AbortSignal): Promise<ToldAnswer> {
  const input = { params: { conversation: c }, query: { seq }, signal };
  for (;;) {
    const { answer } = await untilDone(signal, () =>
      api.request('GET /api/conversations/{conversation}/answer', input),
    );
    if (answer) return answer;
  }
}

/** The events and texts that follow from a stored message. Returns the answer after yielding all of its events. */
async function* partsOf(
  api: ApiClient,
  c: string,
  seq: number,
  signal: AbortSignal,
): AsyncGenerator<Words | { type: 'event'; event: Event }, ToldAnswer> {
  const over = new AbortController();
  const ends = AbortSignal.any([signal, over.signal]);
  const wordsOf = words();
  let last = seq;
  const answered = answerTo(api, c, seq, ends).then(async (answer) => ({
    answer,
    head: await headOf(api, c, ends),
  }));
  // A failure is thrown by the race; after the race has ended nobody waits for it.
  answered.catch(() => undefined);
  const frames = follow(api, c, { after: seq, signal: ends });
  try {
    let next = frames.next();
    for (;;) {
      const known = await Promise.race([next.then(() => null), answered]);
      if (known && last >= known.head) return known.answer;
      const { value: frame, done } = await next;
      if (done) throw aborted(signal);
      next = frames.next();
      // It may fail before it is awaited.
      next.catch(() => undefined);
      yield* wordsOf(frame);
      if (frame.type !== 'event') continue;
      last = frame.event.seq;
      yield { type: 'event', event: frame.event };
    }
  } finally {
    over.abort();
  }
}

async function headOf(api: ApiClient, c: string, signal: AbortSignal): Promise<number> {
  const input = { params: { conversation: c }, query: { limit: 1 }, signal };
  return (await untilDone(signal, () => api.request('GET /api/conversations/{conversation}/events', input)))
    .head;
}

function commandsOf(api: ApiClient): Pick<TroupeClient, 'decide' | 'answer' | 'abort'> {
  async function command(body: CommandBody, { signal, author }: ActOptions = {}): Promise<void> {
    await api.request('POST /api/commands', {
      body: { ...(body as object), author } as CommandBody,
      ...(signal && { signal }),
    });
  }

  return {
    async decide(conversation, { id, argsHash }, { approved, note }, options) {
      const body = { command: 'decide', conversation, request: id, approved, note, argsHash };
      await command(body as CommandBody, options);
    },
    answer: (conversation, { id }, content, options) =>
      command({ command: 'answer', conversation, question: id, content } as CommandBody, options),
    abort: (turn, options) => command({ command: 'abort', turn } as CommandBody, options),
  };
}

function never(): AbortSignal {
  return new AbortController().signal;
}
