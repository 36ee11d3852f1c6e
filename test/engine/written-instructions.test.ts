import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import type { AboutInstructions, InstructionsFunction } from '../../src/actors/actor/agent-runtime.ts';
import { defineTool } from '../../src/tools/tool.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { inOrder, says } from '../support/engine-models.ts';
import { openStage, until } from '../support/engine-stage.ts';
import { openTroupe } from '../support/mode.ts';

interface App {
  shop: string;
}

const look = defineTool({ name: 'look', description: 'Looks.', schema: z.object({}), run: () => 'seen' });

/** An agent whose instructions say how often the function was asked. */
function counting() {
  let count = 0;
  const instructions = ({ tenant, conversation, agent, app }: AboutInstructions<App>) =>
    Promise.resolve(`text ${(count += 1)} for @${agent} in ${tenant}/${conversation} of ${app.shop}`);
  return { instructions, asked: () => count };
}

function company(instructions: InstructionsFunction, tools: string[] = []) {
  const script = { rules: [{ reply: 'done' }] };
  return {
    agents: [{ id: 'bo', provider: 'scripted' as const, script, instructions, tools }],
    tools: [look],
  };
}

async function personaOf(troupe: Troupe, turn: string): Promise<string> {
  const prompt = await troupe.promptOf(turn);
  expect(prompt.verified).toBe(true);
  return prompt.messages[0]?.content ?? '';
}

test('a function writes the instructions for each conversation, once, and what it wrote stays after a restart', async () => {
  const data = mkdtempSync(path.join(tmpdir(), 'troupe-instructions-'));
  onTestFinished(() => rmSync(data, { recursive: true }));
  const app: App = { shop: 'tea' };
  const { instructions, asked } = counting();
  {
    await using troupe = await openTroupe(company(instructions), { data, app });
    await troupe.ask('one', 'hello');
    await troupe.ask('one', 'hello again');
    await troupe.ask('two', 'hello');
    expect(await personaOf(troupe, 'one:bo:2')).toContain('text 1 for @bo in default/one of tea');
    expect(await personaOf(troupe, 'two:bo:1')).toContain('text 2 for @bo in default/two of tea');
  }
  await using again = await openTroupe(company(instructions), { data, app: { shop: 'coffee' } });
  await again.ask('one', 'still there?');
  expect(await personaOf(again, 'one:bo:3')).toContain('text 1 for @bo in default/one of tea');
  expect((await again.prompt('one', 'bo')).messages[0]?.content).toContain('text 1 for');
  expect(asked()).toBe(2);
  const { events } = await again.events('one');
  expect(events.filter(({ kind }) => kind === 'baseline')).toHaveLength(1);
});

test('when the baseline is made anew the function is asked again, and the reason names what changed', async () => {
  const data = mkdtempSync(path.join(tmpdir(), 'troupe-instructions-'));
  onTestFinished(() => rmSync(data, { recursive: true }));
  const options = { data, app: { shop: 'tea' } };
  const { instructions } = counting();
  {
    await using troupe = await openTroupe(company(instructions), options);
    await troupe.ask('one', 'hello');
  }
  await using changed = await openTroupe(company(instructions, ['look']), options);
  await changed.ask('one', 'hello');
  expect(await personaOf(changed, 'one:bo:2')).toContain('text 2 for');
  expect(await personaOf(changed, 'one:bo:1')).toContain('text 1 for');
  const { events } = await changed.events('one');
  const last = events.findLast(({ kind }) => kind === 'baseline');
  expect(last).toMatchObject({ body: { epoch: 2, reason: 'persona (instructions), tools changed' } });
});

test.each<[string, () => unknown, RegExp]>([
  [
    'that throws',
    () => {
      throw new Error('no database');
    },
    /the function failed: no database; mend it, and resume the agent/,
  ],
  ['that rejects', () => Promise.reject(new Error('gone')), /the function failed: gone/],
  ['that gives no text', () => undefined, /the function gave undefined, not a text/],
  [
    'that gives too long a text',
    () => 'x'.repeat(100_001),
    /gave 100001 characters; at most 100000 are taken/,
  ],
  ['that never ends', () => new Promise(() => undefined), /took longer than 10000 ms/],
])(
  'a function %s makes its agent fail with an error that names it, and no other agent',
  async (_, write, words) => {
    let isBroken = true;
    const stage = await openStage({
      agents: [
        {
          id: 'bo',
          model: inOrder(says('here')),
          instructions: (() => (isBroken ? write() : 'Be brief.')) as never,
        },
        { id: 'cy', model: inOrder(says('here too')) },
      ],
    });
    await stage.say('c', 'hello', ['bo', 'cy']);
    await until('the other has answered', async () =>
      (await stage.events('c')).some(({ kind }) => kind === 'turn.done'),
    );
    await stage.clock.advance(10_000);
    await stage.quiet();
    const errors = (await stage.events('c')).filter(({ kind }) => kind === 'error');
    expect(errors).toMatchObject([
      { body: { code: 'config_invalid', message: expect.stringMatching(words) } },
    ]);
    expect(errors[0]).toMatchObject({
      body: { message: expect.stringMatching(/^@bo has failed: instructions of @bo: /) },
    });
    isBroken = false;
    await stage.troupe.command(
      { command: 'resume', conversation: 'c', agent: 'bo' },
      { kind: 'user', id: 'u1', name: 'Ana' },
    );
    await stage.quiet();
    expect((await stage.events('c')).filter(({ kind }) => kind === 'turn.done')).toHaveLength(2);
  },
);

test('a worker without instructions inherits what the function of its manager writes for it', async () => {
  const script = { rules: [{ reply: 'done' }] };
  const base = { provider: 'scripted' as const, script };
  await using troupe = await openTroupe({
    agents: [
      { id: 'lead', role: 'manager', instructions: ({ agent }) => `Written for ${agent}.`, ...base },
      { id: 'bo', role: 'worker', ...base },
    ],
  });
  await troupe.ask('c', { content: 'hello', to: ['bo'] });
  const persona = await personaOf(troupe, 'c:bo:1');
  expect(persona).toContain('The instructions of @lead hold for you too, within your task:\nWritten for bo.');
});
