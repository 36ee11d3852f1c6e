import { expect, test } from 'vitest';
import { createTroupe, defineTool } from '../../../src/index.ts';
import { type ConversationRun, playConversation, readRun } from '../src/index.ts';
import * as z from 'zod';
import { support } from './support-company.ts';

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  schema: z.object({}),
  idempotent: true,
  run: () => 'nothing',
});

/** An agent that looks this many times before it answers. */
function looking(times: number) {
  const calls = [{ name: 'look', args: {} }];
  const rules = Array.from({ length: times }, (_, at) => ({ when: { step: at + 1 }, calls }));
  const script = { rules: [...rules, { reply: 'Nothing.' }] };
  return {
    tools: [look],
    agents: [{ id: 'guard', tools: ['look'], provider: 'scripted', script } as const],
    defaults: { respondWhenUnaddressed: 'guard' },
  };
}

test('a plain conversation is sound', async () => {
  const run = await playConversation(support, 'A charge twice.');
  expect(run).toBeSound();
  expect(() => expect(run).not.toBeSound()).toThrow('expected that the log is not sound');
});

test('a loop that nothing stops is not sound, and one that a guard stops is', async () => {
  const run = await playConversation(looking(5), 'Is anybody there?');
  expect(() => expect(run).toBeSound()).toThrow('guard calls look 5 times for the same');
  const stopped = await playConversation(looking(30), 'Is anybody there?');
  expect(stopped).toHaveBeenStopped('guard', 'repeats');
  expect(stopped).not.toHaveBeenStopped('guard', 'hops');
  expect(stopped).toBeSound();
  await expect(playConversation(looking(3), 'Hello')).resolves.toSatisfy((each: ConversationRun) => {
    expect(each).toBeSound();
    return true;
  });
});

test.each<[string, (run: ConversationRun) => ConversationRun, string]>([
  [
    'an event twice',
    (run) => ({ ...run, events: [...run.events, run.events[0]!] }),
    'id said-1 is used twice (I1)',
  ],
  ['a gap', (run) => ({ ...run, events: run.events.toSpliced(1, 1) }), 'has seq 3 (I1)'],
  ['an input without an answer', (run) => ({ ...run, events: run.events.slice(0, 1) }), '(I2)'],
  [
    'a turn without an end',
    (run) => ({ ...run, turns: run.turns.map((turn) => ({ ...turn, status: 'open' as const })) }),
    'the turn conversation:desk:1 has not ended',
  ],
  [
    'an agent that talks to itself',
    (run) => ({
      ...run,
      events: run.events.map((event) =>
        event.author.id === 'desk' && event.kind === 'message'
          ? { ...event, to: ['desk' as (typeof event.to)[number]] }
          : event,
      ),
    }),
    'desk talks to itself',
  ],
])('a log is not sound with %s', async (_, spoil, problem) => {
  const run = spoil(await playConversation(support, 'A charge twice.'));
  expect(() => expect(run).toBeSound()).toThrow(problem);
});

test('a turn that failed is told from one that did not, by its code', async () => {
  const rules = [{ when: { contains: 'no rule' }, reply: '' }];
  const run = await playConversation([{ id: 'a', provider: 'scripted', script: { rules } }], 'Hello');
  expect(run).toHaveFailed('a', 'provider_invalid_request');
  expect(run).not.toHaveFailed('a', 'context_overflow');
  expect(() => expect(run).not.toHaveFailed(/./)).toThrow('no rule of the script matches');
});

test('any conversation of a troupe is read as a run', async () => {
  await using troupe = await createTroupe(support);
  await troupe.ask('talk', 'A charge twice.');
  const run = await readRun(troupe, 'talk');
  expect(run).toHaveAnswered('desk', 'user', 'reservation');
  expect(run).toBeSound();
  const bare = await readRun(troupe, 'talk', { prompts: false });
  expect(bare.turns[0]?.prompts).toEqual([]);
  await expect(readRun(troupe, 'other')).rejects.toMatchObject({ code: 'conversation_unknown' });
});

test('an imported conversation is read as a run, for what was said', async () => {
  await using troupe = await createTroupe(support, { work: false });
  async function* lines(): AsyncGenerator<string> {
    yield '{"role":"user","content":"Where is it?"}\n{"role":"assistant","content":"In Basel."}\n';
  }
  await troupe.import(lines(), { conversation: 'old', agent: 'desk' });
  const run = await readRun(troupe, 'old');
  expect(run).toHaveSaid('desk', 'In Basel.');
  expect(run).not.toHaveSaid('desk', 'In Bern.');
  expect(run).toBeSound();
});
