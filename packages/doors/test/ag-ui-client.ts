import { type BaseEvent, HttpAgent, type HttpAgentConfig, type Message } from '@ag-ui/client';

export interface Client {
  agent: HttpAgent;
  /** All events that the client has accepted. */
  events: BaseEvent[];
  /** The types of the events of the last run, without those about the state. */
  told: () => string[];
  say: (id: string, content: Extract<Message, { role: 'user' }>['content']) => Promise<void>;
}

/** The real client: it checks every event against the schemas of the protocol, and their order. */
export function clientOf(url: string, config: Partial<HttpAgentConfig> = {}): Client {
  const agent = new HttpAgent({ url, threadId: 't1', ...config });
  const events: BaseEvent[] = [];
  agent.subscribe({ onEvent: ({ event }) => void events.push(event) });
  return {
    agent,
    events,
    told: () => {
      const last = events.findLastIndex(({ type }) => type === 'RUN_STARTED');
      return events
        .slice(last)
        .map(({ type }) => String(type))
        .filter((type) => !type.startsWith('STATE_'));
    },
    async say(id, content) {
      agent.addMessage({ id, role: 'user', content });
      await agent.runAgent();
    },
  };
}

/** Author and text of each message, and the calls. */
export function lines(messages: readonly Message[]): string[] {
  return messages.flatMap((message) => {
    const name = 'name' in message && message.name ? `${message.name}: ` : '';
    const owner = message.subagentRunId === undefined ? '' : '> ';
    const said = typeof message.content === 'string' ? message.content : '';
    const calls = message.role === 'assistant' ? (message.toolCalls ?? []) : [];
    return [
      ...(said === '' && calls.length > 0 ? [] : [`${owner}${message.role} ${name}${said}`]),
      ...calls.map((call) => `${owner}call ${name}${call.function.name} ${call.function.arguments}`),
    ];
  });
}

/** Version 1.0.0 of the client leaves a rejection unhandled when a body breaks off. Here the body ends instead. */
export const calmFetch: HttpAgent['fetch'] = async (url, init) => {
  const answer = await fetch(url, init);
  return new Response(answer.body && endingCalmly(answer.body.getReader()), { headers: answer.headers });
};

function endingCalmly(reader: ReadableStreamDefaultReader<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
      if (done || !value) controller.close();
      else controller.enqueue(value);
    },
    cancel: () => reader.cancel(),
  });
}
