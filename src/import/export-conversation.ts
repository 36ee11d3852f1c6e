import type { Event } from '../events/index.ts';

export const EXPORT_VERSION = 1;

/**
 * A conversation as JSONL: a header, then one event a line. What the log itself adds (tenant, conversation, seq, tokens)
 * stays out, because the log that imports the file adds its own.
 */
export async function* exportConversation(
  events: AsyncIterable<Event> | Iterable<Event>,
  conversation: string,
): AsyncGenerator<string, void> {
  yield `${JSON.stringify({ troupe: EXPORT_VERSION, conversation })}\n`;
  for await (const event of events) {
    const { tenant: _tenant, conversation: _conversation, seq: _seq, tokens: _tokens, ...kept } = event;
    yield `${JSON.stringify(kept)}\n`;
  }
}
