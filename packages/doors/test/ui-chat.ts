import {
  AbstractChat,
  type ChatInit,
  type ChatState,
  type ChatStatus,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
  type UIMessageChunk,
} from 'ai';
import { untilHolds } from '../../../test/support/until-holds.ts';

/** The state that `useChat` keeps, without React. */
class PlainState implements ChatState<UIMessage> {
  status: ChatStatus = 'ready';
  error: Error | undefined = undefined;
  messages: UIMessage[];
  snapshot = <T>(thing: T): T => structuredClone(thing);

  constructor(messages: UIMessage[]) {
    this.messages = messages;
  }

  pushMessage = (message: UIMessage) => {
    this.messages = [...this.messages, structuredClone(message)];
  };

  popMessage = () => {
    this.messages = this.messages.slice(0, -1);
  };

  replaceMessage = (index: number, message: UIMessage) => {
    this.messages = this.messages.with(index, structuredClone(message));
  };
}

class Chat extends AbstractChat<UIMessage> {
  /** Fulfilled by the next answer to a request. */
  nextAnswer = Promise.withResolvers<void>();

  constructor({ messages = [], ...init }: ChatInit<UIMessage>) {
    super({ ...init, state: new PlainState(messages) });
  }
}

/** Resumes the stream of a chat; `opened` is fulfilled once the server has begun to answer, `done` at its end. */
export function resume(chat: Chat): { opened: Promise<void>; done: Promise<void> } {
  chat.nextAnswer = Promise.withResolvers();
  return { opened: chat.nextAnswer.promise, done: chat.resumeStream() };
}

/** The chat of `useChat` at a conversation. */
export function openChat(
  url: string,
  { conversation = 'c1', ...init }: ChatInit<UIMessage> & { conversation?: string } = {},
  headers: Record<string, string> = {},
): Chat {
  const chat: Chat = new Chat({
    id: conversation,
    transport: new DefaultChatTransport({
      api: `${url}/api/conversations/${conversation}/chat`,
      headers,
      fetch: async (...request) => {
        const answer = await fetch(...request);
        chat.nextAnswer.resolve();
        return answer;
      },
    }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    ...init,
  });
  return chat;
}

/** The messages as lines, with the author of each text. */
export function lines(messages: readonly UIMessage[]): string[] {
  return messages.flatMap(({ role, parts }) => {
    let author: string = role;
    return parts.flatMap((part) => {
      if (part.type === 'data-author') author = (part.data as { name: string }).name;
      if (part.type === 'text') return [`${author}: ${part.text}`];
      if (part.type === 'reasoning') return [`${author} thinks: ${part.text}`];
      if (part.type === 'dynamic-tool') return [`${author} calls ${part.toolName}: ${part.state}`];
      return [];
    });
  });
}

export interface Page {
  messages: UIMessage[];
  next: number | null;
}

export async function historyOf(url: string, query = '', conversation = 'c1'): Promise<Page> {
  const response = await fetch(`${url}/api/conversations/${conversation}/chat${query}`);
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return (await response.json()) as Page;
}

/** A message without the parts that only a client or only a stream has, for comparison. */
export function plain(messages: readonly UIMessage[]): unknown {
  return JSON.parse(
    JSON.stringify(messages, (key, value: unknown) =>
      key === 'rawInput' || key === 'metadata' || value === null ? undefined : value,
    ),
  ) as unknown;
}

/** The chunks of a stream. */
export async function chunksIn(response: Response): Promise<UIMessageChunk[]> {
  return chunksOf(await response.text());
}

/** The last event of an unfinished stream may be incomplete. */
export function chunksOf(stream: string): UIMessageChunk[] {
  return stream
    .split('\n\n')
    .slice(0, stream.endsWith('\n\n') ? undefined : -1)
    .flatMap((each) => (each.startsWith('data: {') ? [JSON.parse(each.slice(6)) as UIMessageChunk] : []));
}

export const atRest = (chat: Chat) =>
  untilHolds(() => {
    if (chat.status !== 'ready') throw new Error(`the chat is ${chat.status}: ${chat.error?.message}`);
  });

/** The body of a request with one message of a user. */
export const say = (parts: unknown, more: object = {}) => ({
  messages: [{ id: 'm1', role: 'user', parts, ...more }],
});
