import { useCallback, useEffect, useState } from 'react';
import type { Author, Event, TroupeError } from './troupe.ts';
import type { NewMessage, TroupeClient } from './troupe-client.ts';
import { type Words, words } from './words.ts';

/** A message of the log, or words that an agent is writing. */
export interface ShownMessage {
  /** Id of the event; of words that are being written, the id of the turn. */
  id: string;
  /** Of words that are being written, the name is the agent's id until the log has it. */
  author: Pick<Author, 'id' | 'name'>;
  /** The words. */
  text: string;
  /** Whether it is still being written. */
  isStreaming: boolean;
}

/** A conversation as a component shows it. */
export interface ShownConversation {
  /** In the order of the log; words that are being written are last. */
  messages: readonly ShownMessage[];
  /** `reconnecting`: the connection is lost and is opened again. `failed`: see `error`. */
  status: 'connecting' | 'open' | 'reconnecting' | 'failed';
  /** Why it failed. Null: it did not. */
  error: TroupeError | null;
  /** Stores a message, once. Throws `TroupeError`. */
  send: (message: NewMessage) => Promise<Event>;
}

interface Shown {
  /** What the state is of. */
  of: TroupeClient;
  conversation: string;
  messages: readonly ShownMessage[];
  writing: readonly ShownMessage[];
  status: ShownConversation['status'];
  error: TroupeError | null;
}

/** Options of `useConversation`. */
export interface ConversationOptions {
  /** Begins with the messages among so many of the newest events, so that a long conversation is shown at once. Default: 1,000. */
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
        // The conversation was deleted and begun anew.
        if (frame.type === 'reset') change((now) => ({ ...now, messages: [], writing: [] }));
        const changes = wordsOf(frame);
        const event = frame.type === 'event' ? frame.event : null;
        if (changes.length > 0 || event) change((now) => showEvent(changes.reduce(showWords, now), event));
      }
    }
    read().catch((error: TroupeError) => change((now) => ({ ...now, status: 'failed', error })));
    return () => unmounted.abort();
  }, [client, conversation, newest]);

  const send = useCallback(
    (message: NewMessage) => client.send(conversation, message),
    [client, conversation],
  );
  const isOf = shown.of === client && shown.conversation === conversation;
  const { messages, writing, status, error } = isOf ? shown : begin();
  return { messages: [...messages, ...writing], status, error, send };
}

function showWords(now: Shown, change: Words): Shown {
  const others = now.writing.filter(({ id }) => id !== change.turn);
  if (change.type === 'void') return { ...now, writing: others };
  const known = now.writing.find(({ id }) => id === change.turn);
  const author = known?.author ?? { id: change.agent, name: change.agent };
  const text = (known?.text ?? '') + change.text;
  const next = { id: change.turn, author, text, isStreaming: true };
  if (!known) return { ...now, writing: [...others, next] };
  return { ...now, writing: now.writing.map((each) => (each === known ? next : each)) };
}

/** What the log has takes the place of what was being written. */
function showEvent(now: Shown, event: Event | null): Shown {
  if (!event) return now;
  const writing = now.writing.filter(({ id }) => id !== event.turn);
  if (event.kind !== 'message' && event.kind !== 'step')
    return event.kind === 'turn.failed' || event.kind === 'turn.aborted' ? { ...now, writing } : now;
  const { id, author, body } = event;
  if (body.content === '') return { ...now, writing };
  return {
    ...now,
    writing,
    messages: [...now.messages, { id, author, text: body.content, isStreaming: false }],
  };
}
