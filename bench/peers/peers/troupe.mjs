import { createTroupe, defineProvider } from '../../../src/index.ts';
import { REPLY } from '../fake-model.mjs';
import { textOf } from '../texts.mjs';

const ANA = { kind: 'user', id: 'ana', name: 'Ana' };
const USAGE = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** Embedded, as `createTroupe` opens it: SQLite, synced, every step journalled, the whole history in each prompt. */
export async function open(dir, options = {}) {
  const sent = { calls: 0, chars: 0, messages: 0 };
  const model = defineProvider({
    name: 'fake',
    async *read({ messages }) {
      sent.calls += 1;
      sent.messages = messages.length;
      for (const { content } of messages) sent.chars += content.length;
      yield { type: 'text', delta: REPLY };
      yield { type: 'done', stop: 'end', usage: USAGE };
    },
  });
  const agentOf = (id) => ({
    id,
    instructions: 'Take notes.',
    provider: 'custom',
    adapter: 'fake',
    model: 'fake',
    contextWindow: 10_000_000,
  });
  const stop = (error, where) => {
    throw new Error(where, { cause: error });
  };
  const company = { agents: ['left', 'right'].map(agentOf), providers: { fake: model } };
  const troupe = await createTroupe(company, { ...options, data: `${dir}/troupe`, onWarning: stop });
  const waiting = new Map();
  troupe.watch((note) => {
    if (note.type !== 'event') return;
    if (note.event.kind === 'turn.done') waiting.get(note.event.conversation)?.();
    if (note.event.kind === 'turn.failed') throw new Error(note.event.body.message);
  });
  return {
    sent,
    async turn(conversation, agent, text) {
      const done = new Promise((resolve) => waiting.set(conversation, resolve));
      await troupe.send(conversation, { author: ANA, to: [agent], content: text });
      await done;
    },
    async fill(conversation, count) {
      for (let from = 0; from < count; from += 500)
        await Promise.all(
          Array.from({ length: Math.min(500, count - from) }, (_, index) =>
            troupe.send(conversation, { author: ANA, content: textOf(from + index), replyTo: 'none' }),
          ),
        );
    },
    close: () => troupe[Symbol.asyncDispose](),
  };
}
