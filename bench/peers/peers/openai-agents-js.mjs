import { Agent, run, setTracingDisabled, Usage } from '@openai/agents';
import { REPLY } from '../fake-model.mjs';
import { messagesOf } from '../texts.mjs';
import { openMessageTable } from './message-table.mjs';

setTracingDisabled(true);

const answered = (text) => ({
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text }],
});

/** Agents of OpenAI's SDK with a session on SQLite: a row per item, on the disk before the call returns. */
export function open(dir) {
  const table = openMessageTable(dir);
  const sent = { calls: 0, chars: 0, messages: 0 };
  const model = {
    async getResponse({ systemInstructions = '', input }) {
      const items = typeof input === 'string' ? [{ content: input }] : input;
      sent.calls += 1;
      sent.messages = items.length + 1;
      sent.chars += systemInstructions.length;
      for (const { content } of items) sent.chars += charsOf(content);
      return { usage: new Usage(), output: [answered(REPLY)] };
    },
    getStreamedResponse() {
      throw new Error('nothing here streams');
    },
  };
  const agents = new Map();
  const agentOf = (name) => {
    const agent = agents.get(name) ?? new Agent({ name, instructions: 'Take notes.', model });
    agents.set(name, agent);
    return agent;
  };
  const sessionOf = (conversation) => ({
    getSessionId: async () => conversation,
    async getItems(limit) {
      const items = table.read(conversation);
      return limit === undefined ? items : items.slice(items.length - Math.min(limit, items.length));
    },
    addItems: async (items) => table.add(conversation, items),
    async popItem() {
      throw new Error('nothing here is taken back');
    },
    async clearSession() {
      throw new Error('nothing here is forgotten');
    },
  });
  return {
    sent,
    async turn(conversation, agent, text) {
      await run(agentOf(agent), text, { session: sessionOf(conversation) });
    },
    async fill(conversation, count) {
      const items = messagesOf(count).map(({ role, content }) =>
        role === 'user' ? { type: 'message', role, content } : answered(content),
      );
      table.add(conversation, items);
    },
    close: async () => table.close(),
  };
}

function charsOf(content) {
  if (typeof content === 'string') return content.length;
  return content.reduce((sum, { text = '' }) => sum + text.length, 0);
}
