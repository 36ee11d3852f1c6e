import { expect, test } from 'vitest';
import { workplace } from './harness.ts';

test('a turn is run again from the data alone, and both are shown side by side', async () => {
  using place = workplace();
  await place.call(['send', 'c1', 'Hello']);
  const { json } = await place.call(['rerun', 'c1:planner:1', '--message', 'Goodbye', '--json']);
  expect(json).toMatchObject({
    rerun: { turn: 'c1:planner:1', change: { kind: 'message', content: 'Goodbye' }, tools: 'recorded' },
    a: { turn: 'c1:planner:1', status: 'done', words: 'plan 1' },
    b: { turn: 'c1-fork-1:planner:1', status: 'done', words: 'plan 1' },
  });
  const { out } = await place.call(['compare', 'c1:planner:1', 'c1-fork-1:planner:1']);
  expect(out).toContain('changed: message; tools: recorded');
  expect(out).toMatch(/state +done +done/);
  expect(out.trimEnd()).toMatch(/\n\nplan 1$/);
  const both = await place.call(['rerun', 'c1:planner:1', '--message', 'x', '--model', 'y', '--json']);
  expect(both.json).toMatchObject({
    error: { message: 'change one thing at a time: --message and --model are given' },
  });
});
