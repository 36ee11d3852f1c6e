import { useCallback, useEffect, useMemo, useState } from 'react';
import { type Words, words } from './follow.ts';
import type { Attachment, Author, Event, TroupeError } from './troupe.ts';
import type { ActOptions, Task, TroupeClient } from './troupe-client.ts';

/** A method of the client without its first parameter, the conversation, which a hook knows. */
type Bound<Method> = Method extends (conversation: string, ...rest: infer Rest) => infer Result
  ? (...rest: Rest) => Result
  : never;

/** A message of the log, or text that an agent is writing. */
export interface ShownMessage {
  /** Id of the event; while the text is being written, id of the turn. */
  id: string;
  /** Seq of the event, which names its attachments. Null: it is still being written. */
  seq: number | null;
  /** When it was stored, ms since the epoch. Null: it is still being written. */
  at: number | null;
  /** Its author. While the text is being written, the author's name is the agent's id. */
  author: Author;
  /** Its text. */
  text: string;
  /** The JSON answer of an agent that replies in JSON. Undefined: it has none. */
  data: unknown;
  /** Images, files and texts, without the bytes: see `attachment` of the client. */
  attachments: readonly Attachment[];
  /** Whether it is only for people: no agent sees it. */
  isNotice: boolean;
  /** Whether text of it was erased. */
  isErased: boolean;
  /** Whether it is still being written. */
  isStreaming: boolean;
}

/** A conversation as a component shows it. */
export interface ShownConversation {
  /** In the order of the log; texts that are being written come last. */
  messages: readonly ShownMessage[];
  /** `reconnecting`: the connection was lost and is being reopened. `failed`: see `error`. */
  status: 'connecting' | 'open' | 'reconnecting' | 'failed';
  /** Why it failed. Null: it has not failed. */
  error: TroupeError | null;
  /** Stores a message exactly once, like `send` of the client. Throws `TroupeError`. */
  send: Bound<TroupeClient['send']>;
}

interface Shown {
  /** The client that the state belongs to. */
  of: TroupeClient;
  conversation: string;
  messages: readonly ShownMessage[];
  writing: readonly ShownMessage[];
  status: ShownConversation['status'];
  error: TroupeError | null;
}

/** Options of `useConversation`. */
export interface ConversationOptions {
  /** Begins with the messages among this many of the newest events, so that a long conversation is shown at once. Default: 1,000. */
  newest?: number | undefined;
}

/** Follows a conversation while the component is mounted. */
export function useConversation(
  client: TroupeClient,
  conversation: string,
  { newest = 1_000 }: ConversationOptions = {},
): ShownConversation {
  const begin = (): Shown => ({
    of: client,
    conversation,
    messages: [],
    writing: [],
    status: 'connecting',
    error: null,
  });
  const [shown, setShown] = useState(begin);

  useEffect(() => {
    const unmounted = new AbortController();
    const { signal } = unmounted;
    const change = (next: (now: Shown) => Shown) => {
      if (!signal.aborted) setShown(next);
    };
    const onConnection = (isOpen: boolean) =>
      change((now) => ({ ...now, status: isOpen ? 'open' : 'reconnecting' }));
    async function read() {
      change(begin);
      const wordsOf = words();
      for await (const frame of client.follow(conversation, { newest, signal, onConnection })) {
        // The conversation was deleted and begun again.
        if (frame.type === 'reset') change((now) => ({ ...now, messages: [], writing: [] }));
        const changes = wordsOf(frame);
        const event = frame.type === 'event' ? frame.event : null;
        if (changes.length > 0 || event) change((now) => showEvent(changes.reduce(showWords, now), event));
      }
    }
    read().catch((error: TroupeError) => change((now) => ({ ...now, status: 'failed', error })));
    return () => unmounted.abort();
  }, [client, conversation, newest]);

  const send: ShownConversation['send'] = useCallback(
    (message, options) => client.send(conversation, message, options),
    [client, conversation],
  );
  const isOf = shown.of === client && shown.conversation === conversation;
  const { messages, writing, status, error } = isOf ? shown : begin();
  return { messages: [...messages, ...writing], status, error, send };
}

function showWords(now: Shown, change: Words): Shown {
  const { turn: id, agent } = change;
  const others = now.writing.filter((each) => each.id !== id);
  if (change.type === 'void') return { ...now, writing: others };
  const known = now.writing.find((each) => each.id === id);
  if (known) {
    const next = { ...known, text: known.text + change.text };
    return { ...now, writing: now.writing.map((each) => (each === known ? next : each)) };
  }
  const author: Author = { kind: 'agent', id: agent, name: agent };
  const unstored = {
    seq: null,
    at: null,
    data: undefined,
    attachments: [],
    isNotice: false,
    isErased: false,
    isStreaming: true,
  };
  return { ...now, writing: [...others, { id, author, text: change.text, ...unstored }] };
}

/** Replaces the text that was being written by the stored message. */
function showEvent(now: Shown, event: Event | null): Shown {
  if (!event) return now;
  const { turn, kind, body } = event;
  const writing = now.writing.filter((each) => each.id !== turn);
  if (kind === 'command' && body.erasure) return eraseIn(now, body.erasure);
  if (kind === 'turn.failed' || kind === 'turn.aborted') return { ...now, writing };
  const message = messageOf(event);
  if (!message) return now;
  // A step that has only calls shows no message.
  if (message.text === '' && message.attachments.length === 0) return { ...now, writing };
  return { ...now, writing, messages: [...now.messages, message] };
}

function messageOf(event: Event): ShownMessage | null {
  const { id, seq, at, author, kind, body, erased } = event;
  if (kind !== 'message' && kind !== 'notice' && kind !== 'step') return null;
  const { data, attachments = [] }: { data?: unknown; attachments?: Attachment[] | undefined } =
    kind === 'step' ? {} : body;
  const marks = { isNotice: kind === 'notice', isErased: erased !== undefined, isStreaming: false };
  return { id, seq, at, author, text: body.content, data, attachments, ...marks };
}

/** Text that the log has in place of erased text. */
const ERASED_WORDS = '[erased]';

/** Erases text that is already shown. */
function eraseIn(
  now: Shown,
  { person, events }: { person: string; events: readonly { id: string }[] },
): Shown {
  const ids = new Set(events.map(({ id }) => id));
  const messages = now.messages.map((each): ShownMessage => {
    if (!ids.has(each.id) || each.isErased) return each;
    const { author } = each;
    const isOwn = author.kind === 'user' && author.id === person;
    const left = { text: ERASED_WORDS, data: undefined, attachments: [], isErased: true };
    return { ...each, ...left, author: isOwn ? { ...author, name: author.id } : author };
  });
  return { ...now, messages };
}

/** What agents ask people for. */
export interface Approvals {
  /**
   * Open approvals: `tool` and `args` are the call. Show buttons only where `decidable` is true, which the server decides for
   * this key and author.
   */
  approvals: readonly Task[];
  /** Open questions: `text` is the question. The author may answer where `decidable` is true. */
  questions: readonly Task[];
  /** Why the list cannot be read. Null: it was read. */
  error: TroupeError | null;
  /** Decides an approval, like `decide` of the client. Throws `TroupeError`, also if somebody has already decided. */
  decide: Bound<TroupeClient['decide']>;
  /** Answers a question, like `answer` of the client. Throws `TroupeError`. */
  answer: Bound<TroupeClient['answer']>;
}

const NONE: readonly Task[] = [];
/** Kinds of events that may open or end a task. */
const TASK_KINDS = /^(?:approval|question|command)/;

/**
 * The open approvals and questions of a conversation, while the component is mounted. Once anybody has decided one, it
 * disappears for all. `author`: the person who views and decides. Default: the author of the key.
 */
export function useApprovals(
  client: TroupeClient,
  conversation: string,
  { author }: Pick<ActOptions, 'author'> = {},
): Approvals {
  const [open, setOpen] = useState<readonly Task[]>(NONE);
  const [error, setError] = useState<TroupeError | null>(null);
  const { kind, id, name } = author ?? {};
  // A new object for the same person must not count as a change.
  const as = useMemo(
    () => ({ author: kind && id && name ? { kind, id, name } : undefined }),
    [kind, id, name],
  );

  useEffect(() => {
    const unmounted = new AbortController();
    const { signal } = unmounted;
    setOpen(NONE);
    setError(null);
    let isStale = false;
    let isReading = false;
    const fail = (failure: TroupeError) => {
      if (!signal.aborted) setError(failure);
    };
    async function readAgain() {
      isReading = true;
      try {
        while (isStale && !signal.aborted) {
          isStale = false;
          const tasks = await client.tasks(conversation, { ...as, open: true, signal });
          if (signal.aborted) return;
          setOpen(tasks);
          setError(null);
        }
      } finally {
        isReading = false;
      }
    }
    /** One request at a time, and one more if something has changed meanwhile. */
    const refresh = () => {
      isStale = true;
      if (!isReading) readAgain().catch(fail);
    };
    async function read() {
      let isFirst = true;
      // The first frame proves that the conversation exists. The list then has everything that was asked earlier.
      for await (const frame of client.follow(conversation, { newest: 1, signal })) {
        if (frame.type !== 'event') continue;
        if (isFirst || TASK_KINDS.test(frame.event.kind)) refresh();
        isFirst = false;
      }
    }
    read().catch(fail);
    return () => unmounted.abort();
  }, [client, conversation, as]);

  const decide: Approvals['decide'] = useCallback(
    (task, decision, options) => client.decide(conversation, task, decision, { ...as, ...options }),
    [client, conversation, as],
  );
  const answer: Approvals['answer'] = useCallback(
    (task, content, options) => client.answer(conversation, task, content, { ...as, ...options }),
    [client, conversation, as],
  );
  const approvals = open.filter((task) => task.kind === 'approval');
  return { approvals, questions: open.filter((task) => task.kind === 'question'), error, decide, answer };
}
