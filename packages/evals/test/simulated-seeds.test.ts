import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { person, scoreScenarios, scriptedUser, simulatedUser, userReachedGoal } from '../src/index.ts';
import {
  customer,
  gaveUp,
  GOAL,
  modelOf,
  playedBy,
  reached,
  type Replies,
  says,
} from './simulated-customer.ts';
import { support } from './support-company.ts';

const [mia, dana] = [person('mia'), person('dana')];

test('the number of the run is told to the model, and is its seed', async () => {
  const { user, asked } = customer([reached('')]);
  await playedBy([user], { seed: 7 });
  expect(asked[0]?.messages[0]?.content).toContain('This is play 7.');
  const seeds: unknown[] = [];
  const { model } = modelOf(reached(''));
  const use = (agent: { seed?: number | undefined }) => {
    seeds.push(agent.seed);
    return model.use;
  };
  const seeded = simulatedUser({ person: mia, goal: GOAL, model: { ...model, use } });
  await playedBy([seeded], { seed: 3 });
  expect(seeds).toEqual([3]);
});

function folder(): string {
  const made = mkdtempSync(path.join(tmpdir(), 'troupe-simulated-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

test('a recorded run is played again without any model, with the same bytes', async () => {
  const recording = path.join(folder(), 'run.jsonl');
  const replies = [
    says('It costs more than you promised.'),
    { move: 'wait' },
    'No move.',
    reached('They pay.'),
  ];
  const boss = [dana.answers('refund it'), dana.approves('refund')];
  const night = customer(replies);
  const recorded = await playedBy([night.user, scriptedUser(boss)], { troupe: { record: recording } });
  expect(recorded).toHaveReachedGoal('mia');
  const silent = modelOf();
  const day = simulatedUser({ person: mia, goal: GOAL, model: silent.model });
  const models = { '*': { rules: [{ reply: 'Never said.' }] } };
  const replayed = await playedBy([day, scriptedUser(boss)], { models, troupe: { replay: recording } });
  expect(JSON.stringify(replayed.events)).toBe(JSON.stringify(recorded.events));
  expect(replayed.users).toEqual(recorded.users);
  expect(silent.asked).toEqual([]);
  const other = simulatedUser({ person: mia, goal: 'Something else.', model: silent.model });
  const strange = await playedBy([other], { models, troupe: { replay: recording } });
  expect(strange.ended).toMatchObject({ why: expect.stringContaining('the recording has no answer') });
});

test('runs of several seeds are recorded and scored, each with its own answers', async () => {
  const recording = path.join(folder(), 'runs.jsonl');
  const scenario = (...replies: Replies) => {
    const users = { users: [customer(replies).user] };
    return [{ name: 'a charge', users }];
  };
  const scores = { reached: userReachedGoal(), mia: userReachedGoal('mia'), eve: userReachedGoal('eve') };
  const settings = { scores, repeats: 2 };
  const night = await scoreScenarios(
    support,
    scenario(says('A charge twice.'), reached('So.'), gaveUp('No.')),
    {
      ...settings,
      troupe: { record: recording },
    },
  );
  const [first, second] = night.scenarios[0]?.runs ?? [];
  expect(first?.scores).toContainEqual({ score: 'reached', kind: 'scored', value: true, why: '' });
  expect(second?.scores).toContainEqual({
    score: 'mia',
    kind: 'scored',
    value: false,
    why: 'Mia: gave up, No.',
  });
  expect(second?.scores).toContainEqual({ score: 'eve', kind: 'none', why: 'no such user is simulated' });
  const models = { '*': { rules: [{ reply: 'Never said.' }] } };
  const day = await scoreScenarios(support, scenario(), {
    ...settings,
    models,
    troupe: { replay: recording },
  });
  expect(day).toEqual(night);
});
