import { expect, test } from 'vitest';
import { scripted, scriptedRoom } from '../scenarios/stage.ts';

test('turns run until the budget of their conversation is spent; then one fails and says what to do', async () => {
  const writer = scripted('writer', { maxOutputTokens: 100 });
  await using room = await scriptedRoom({ agents: [writer], budgets: { conversation: { tokens: 2_000 } } });
  for (let turn = 1; turn <= 30; turn += 1) await room.say('writer', `once more, for the ${turn}th time`);
  const done = await room.events('turn.done');
  const failed = await room.events('turn.failed');
  expect(done.length).toBeGreaterThan(2);
  expect(done.length + failed.length).toBe(30);
  const body = failed[0]?.body;
  expect(body).toMatchObject({ code: 'budget_exceeded' });
  expect(JSON.stringify(body)).toContain('raise budgets.conversation.tokens in the agents file');
  const spent = done.reduce((sum, { body: { usage } }) => sum + usage.input + usage.output, 0);
  console.log(
    `budget of 2000 tokens: ${done.length} turns done for ${spent} tokens, ${failed.length} refused`,
  );
  expect(spent).toBeLessThanOrEqual(2_000);
});

test('many agents wait for amounts that are only held, and none is refused', async () => {
  const agents = ['a', 'b', 'c', 'd'].map((id) => scripted(id, { maxOutputTokens: 1_000 }));
  await using room = await scriptedRoom({ agents, budgets: { tenant: { tokens: 3_000, per: 'day' } } });
  await Promise.all(agents.map(({ id }) => room.say(id, 'all at once')));
  expect(await room.events('turn.done')).toHaveLength(4);
  expect(await room.events('turn.failed')).toHaveLength(0);
});
