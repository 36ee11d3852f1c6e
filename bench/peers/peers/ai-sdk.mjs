import { generateText } from 'ai';
import { createFakeModel } from '../fake-model.mjs';
import { messagesOf } from '../texts.mjs';
import { openMessageTable } from './message-table.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;

/** `generateText` with messages that the application keeps. */
export function open(dir) {
  const table = openMessageTable(dir);
  const { model, sent } = createFakeModel();
  return {
    sent,
    async turn(conversation, agent, text) {
      table.add(conversation, [{ role: 'user', content: text }]);
      const { text: reply } = await generateText({
        model,
        system: 'Take notes.',
        messages: table.read(conversation),
      });
      table.add(conversation, [{ role: 'assistant', content: reply }]);
    },
    fill: async (conversation, count) => table.add(conversation, messagesOf(count)),
    close: async () => table.close(),
  };
}
