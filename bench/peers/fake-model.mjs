/** A model of the AI SDK that answers at once, and counts what it was sent. */
export const REPLY = 'Understood, and noted.';
const USAGE = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };

export function createFakeModel() {
  const sent = { calls: 0, chars: 0, messages: 0 };
  const count = (prompt) => {
    sent.calls += 1;
    sent.messages = prompt.length;
    for (const { content } of prompt) sent.chars += charsOf(content);
  };
  const model = {
    specificationVersion: 'v2',
    provider: 'fake',
    modelId: 'fake',
    supportedUrls: {},
    async doGenerate({ prompt }) {
      count(prompt);
      return { content: [{ type: 'text', text: REPLY }], finishReason: 'stop', usage: USAGE, warnings: [] };
    },
    async doStream({ prompt }) {
      count(prompt);
      const parts = [
        { type: 'stream-start', warnings: [] },
        { type: 'text-start', id: '1' },
        { type: 'text-delta', id: '1', delta: REPLY },
        { type: 'text-end', id: '1' },
        { type: 'finish', finishReason: 'stop', usage: USAGE },
      ];
      return { stream: ReadableStream.from(parts) };
    },
  };
  return { model, sent };
}

/** Text only: what wraps it differs from vendor to vendor. */
function charsOf(content) {
  if (typeof content === 'string') return content.length;
  return content.reduce((sum, { text = '' }) => sum + text.length, 0);
}
