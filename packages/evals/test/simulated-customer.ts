import {
  type ConversationRun,
  type NewUser,
  person,
  simulatedUser,
  type SimulatedUserSettings,
} from '../src/index.ts';
import { playToItsEnd } from '../src/play-conversation.ts';
import { defineProvider, type ModelRequest } from '../../../src/index.ts';
import { support } from './support-company.ts';

const mia = person('mia');
export const GOAL = 'Get the 90 euros back.';
const USAGE = { input: 400, output: 20, cacheRead: 0, cacheWrite: 0, reasoning: 0 };

/** A model that writes these replies, one after the other, and keeps what it was asked. An object is a move; calls are calls. */
export function modelOf(...replies: (string | object)[]) {
  const asked: ModelRequest[] = [];
  const use = defineProvider({
    name: 'mine',
    async *read(request) {
      const reply = replies[asked.length] ?? { move: 'wait', text: '' };
      asked.push(request);
      if (typeof reply === 'object' && 'call' in reply) {
        const { call: name, args = {} } = reply as { call: string; args?: object };
        yield { type: 'call', call: { id: `c${asked.length}`, name, args: JSON.stringify(args) } };
        yield { type: 'done', stop: 'calls', usage: USAGE };
        return;
      }
      yield { type: 'text', delta: typeof reply === 'string' ? reply : JSON.stringify(reply) };
      yield { type: 'done', stop: 'end', usage: USAGE };
    },
  });
  const told = () => asked.map(({ messages }) => messages.at(-1)?.content ?? '');
  return { model: { use, contextWindow: 128_000 }, asked, told };
}

export const says = (text: string) => ({ move: 'say', text });
export const reached = (text: string) => ({ move: 'leave', text });
export const gaveUp = (text: string) => ({ move: 'give_up', text });

export type Replies = Parameters<typeof modelOf>;

export function customer(replies: Replies, more: Partial<SimulatedUserSettings> = {}) {
  const made = modelOf(...replies);
  return { ...made, user: simulatedUser({ person: mia, goal: GOAL, model: made.model, ...more }) };
}

export async function playedBy(users: readonly NewUser[], options = {}): Promise<ConversationRun> {
  return playToItsEnd(support, { users }, options);
}
