import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'vitest';
import { troupe as supportDesk } from '../../examples/support-triage/agents.ts';
import * as scripts from '../../examples/support-triage/scripts.ts';
import {
  type NewUser,
  person,
  playConversation,
  scriptedUser,
  simulatedUser,
} from '../../src/evals/index.ts';
import { startLlamaServer } from '../services/llama-server.ts';
import { withRealModel } from './real-model-stage.ts';

const [mia, dana] = [person('mia'), person('dana')];
const MOST_MOVES = 4;

/** Decides whatever she is asked. */
const boss: NewUser = () => ({
  name: 'Dana',
  next: ({ waits }) => (waits.length > 0 ? dana.answers('refund 90 euros') : { move: 'wait' }),
});

function customerOn(baseUrl: string): NewUser {
  return simulatedUser({
    person: mia,
    goal: 'Know why there is a charge on your invoice twice.',
    maxMoves: MOST_MOVES,
    moves: ['say'],
    model: {
      provider: 'openai-compatible',
      baseUrl,
      model: 'smollm2',
      contextWindow: 4_096,
      maxOutputTokens: 160,
      temperature: 0,
      // The grammar of the server then bounds the words too.
      quirks: { schemas: 'whole' },
    },
  });
}

/**
 * So small a model understands little, so what it says and how it ends is left open: each course that the moves allow is a
 * good one. Its own end counts as well as that after the last move.
 */
withRealModel(
  'a simulated customer on a real model plays the scenario of the support desk to its end, and a replay needs no model',
  async (llama) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'troupe-real-user-'));
    await using stack = new AsyncDisposableStack();
    stack.defer(() => rmSync(folder, { recursive: true, force: true }));
    const record = path.join(folder, 'run.jsonl');
    const first = scriptedUser([mia.says('There is a charge on my invoice twice!')]);
    const usersOn = (url: string) => ({ users: [first, customerOn(url), boss] });
    const server = stack.use(await startLlamaServer(llama, { contextTokens: 4_096 }));
    const night = await playConversation(supportDesk, usersOn(server.url), {
      models: scripts,
      troupe: { record },
    });
    expect(night).toBeSound();
    expect(night).not.toHaveFailed(/./);
    expect(night).toHaveAnswered('billing', 'mia', 'a reservation, which ends in three days');
    const [customer] = night.users;
    expect(customer?.outcome.kind).toMatch(/^(?:reached|gave up|stopped)$/);
    expect(customer?.moves).toBeLessThanOrEqual(MOST_MOVES);
    expect(customer?.calls).toBeGreaterThan(0);
    expect(customer?.tokens).toBeGreaterThan(100);

    await server[Symbol.asyncDispose]();
    const day = await playConversation(supportDesk, usersOn(server.url), {
      models: scripts,
      troupe: { replay: record },
    });
    expect(JSON.stringify(day.events)).toBe(JSON.stringify(night.events));
    expect(day.users).toEqual(night.users);
  },
);
