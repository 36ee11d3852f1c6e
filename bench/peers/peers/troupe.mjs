import { Readable } from 'node:stream';
import { createTroupe, defineProvider } from '../../../src/index.ts';
import { REPLY } from '../fake-model.mjs';
import { messagesOf } from '../texts.mjs';

const ANA = { kind: 'user', id: 'ana', name: 'Ana' };
/** Characters of a token, as vendors bill them: Troupe doubts a usage that cannot be. */
const CHARS = 4;
const REST = { output: 6, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** Embedded, as `createTroupe` opens it: SQLite, synced, every step journalled, the whole history in each prompt. */
export async function open(dir, options = {}) {
  const sent = { calls: 0, chars: 0, messages: 0 };
  const model = defineProvider({
    name: 'fake',
    async *read({ messages }) {
      sent.calls += 1;
      sent.messages = messages.length;
      let chars = 0;
      for (const { content } of messages) chars += content.length;
      sent.chars += chars;
      yield { type: 'text', delta: REPLY };
      yield { type: 'done', stop: 'end', usage: { ...REST, input: Math.ceil(chars / CHARS) } };
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
      const transcript = JSON.stringify({ messages: messagesOf(count) });
      await troupe.import(Readable.from([transcript]), { conversation, agent: 'left', format: 'openai' });
    },
    close: () => troupe[Symbol.asyncDispose](),
  };
}
