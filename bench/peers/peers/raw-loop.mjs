import { REPLY } from '../fake-model.mjs';
import { messagesOf } from '../texts.mjs';
import { openMessageTable } from './message-table.mjs';

/** No framework: the history is read, the answer is written, and nothing else. The floor. */
export function open(dir) {
  const table = openMessageTable(dir);
  const sent = { calls: 0, chars: 0, messages: 0 };
  return {
    sent,
    async turn(conversation, agent, text) {
      const said = { role: 'user', content: text };
      table.add(conversation, [said]);
      const prompt = [{ role: 'system', content: 'Take notes.' }, ...table.read(conversation)];
      sent.calls += 1;
      sent.messages = prompt.length;
      for (const { content } of prompt) sent.chars += content.length;
      table.add(conversation, [{ role: 'assistant', content: REPLY, name: agent }]);
    },
    fill: async (conversation, count) => table.add(conversation, messagesOf(count)),
    close: async () => table.close(),
  };
}
