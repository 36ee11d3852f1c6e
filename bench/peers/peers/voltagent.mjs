import { Agent, Memory } from '@voltagent/core';
import { LibSQLMemoryAdapter } from '@voltagent/libsql';
import { createFakeModel } from '../fake-model.mjs';
import { messagesOf } from '../texts.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;
const USER = 'ana';

/** Agents of VoltAgent with its memory on LibSQL, the whole conversation in each prompt. */
export async function open(dir) {
  const { model, sent } = createFakeModel();
  const memory = new Memory({ storage: new LibSQLMemoryAdapter({ url: `file:${dir}/voltagent.db` }) });
  const agents = new Map();
  const agentOf = (id) => {
    const agent = agents.get(id) ?? new Agent({ name: id, instructions: 'Take notes.', model, memory });
    agents.set(id, agent);
    return agent;
  };
  return {
    sent,
    async turn(conversation, agent, text) {
      const context = { userId: USER, conversationId: conversation, contextLimit: 1_000_000 };
      await agentOf(agent).generateText(text, context);
    },
    async fill(conversation, count) {
      await memory.createConversation({
        id: conversation,
        userId: USER,
        resourceId: 'a',
        title: '',
        metadata: {},
      });
      const messages = messagesOf(count).map(({ role, content }, index) => ({
        id: `${conversation}-${index}`,
        role,
        parts: [{ type: 'text', text: content }],
      }));
      for (let at = 0; at < count; at += 500)
        await memory.addMessages(messages.slice(at, at + 500), USER, conversation);
    },
    close: async () => {},
  };
}
