import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect } from 'vitest';
import { troupe as supportDesk } from '../../examples/support-triage/agents.ts';
import * as scripts from '../../examples/support-triage/scripts.ts';
import { type NewUser, person, playConversation, simulatedUser } from '../../packages/evals/src/index.ts';
import { startLlamaServer } from '../services/llama-server.ts';
import { withRealModel } from './real-model-stage.ts';

const [mia, dana] = [person('mia'), person('dana')];
const MOST_MOVES = 6;

/** Decides whatever she is asked. */
const boss: NewUser = () => ({
  name: 'Dana',
  next: ({ waits }) => (waits.length > 0 ? dana.answers('refund 90 euros') : { move: 'wait' }),
});

function customerOn(baseUrl: string): NewUser {
  return simulatedUser({
    person: mia,
    goal: 'Get back the 90 euros that your yearly plan costs more than before.',
    until: 'the 90 euros are on their way',
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
 * So small a model understands little, so what it says is left open: whatever it is, the support desk asks Dana, and tells the customer what
 * she has decided. That it has what it wanted is found in the log.
 */
withRealModel(
  'a simulated customer on a real model reaches its goal at the support desk, and a replay needs no model',
  async (llama) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'troupe-real-user-'));
    await using stack = new AsyncDisposableStack();
    stack.defer(() => rmSync(folder, { recursive: true, force: true }));
    const record = path.join(folder, 'run.jsonl');
    const usersOn = (url: string) => ({ users: [boss, customerOn(url)] });
    const server = stack.use(await startLlamaServer(llama, { contextTokens: 4_096 }));
    const night = await playConversation(supportDesk, usersOn(server.url), {
      models: scripts,
      troupe: { record },
    });
    expect(night).toBeSound();
    expect(night).not.toHaveFailed(/./);
    expect(night).toHaveHandedOver('triage', 'billing');
    expect(night).toHaveAsked('billing', 'dana', 'Refund it?');
    expect(night).toHaveReachedGoal('mia');
    const [customer] = night.users;
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
