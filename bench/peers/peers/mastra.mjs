import { Agent } from '@mastra/core/agent';
import { LibSQLStore } from '@mastra/libsql';
import { Memory } from '@mastra/memory';
import { createFakeModel } from '../fake-model.mjs';
import { messagesOf } from '../texts.mjs';

const RESOURCE = 'ana';

/** Agents of Mastra with its memory on LibSQL, the whole thread in each prompt. */
export async function open(dir) {
  const { model, sent } = createFakeModel();
  const storage = new LibSQLStore({ id: 'store', url: `file:${dir}/mastra.db` });
  const options = {
    lastMessages: 1_000_000,
    semanticRecall: false,
    workingMemory: { enabled: false },
    generateTitle: false,
  };
  const memory = new Memory({ storage, options });
  const agents = new Map();
  const agentOf = (id) => {
    const agent = agents.get(id) ?? new Agent({ id, name: id, instructions: 'Take notes.', model, memory });
    agents.set(id, agent);
    return agent;
  };
  return {
    sent,
    async turn(conversation, agent, text) {
      await agentOf(agent).generate(text, { memory: { thread: conversation, resource: RESOURCE } });
    },
    async fill(conversation, count) {
      await memory.createThread({ threadId: conversation, resourceId: RESOURCE });
      const from = Date.now() - count * 10;
      const messages = messagesOf(count).map(({ role, content }, index) => ({
        id: `${conversation}-${index}`,
        role,
        createdAt: new Date(from + index * 10),
        threadId: conversation,
        resourceId: RESOURCE,
        content: { format: 2, parts: [{ type: 'text', text: content }], content },
      }));
      for (let at = 0; at < count; at += 500)
        await memory.saveMessages({ messages: messages.slice(at, at + 500) });
    },
    close: async () => {},
  };
}
