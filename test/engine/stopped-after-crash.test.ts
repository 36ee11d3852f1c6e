import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { mortal } from '../support/engine-driver.ts';
import { asks, byStep, says } from '../support/engine-models.ts';
import { openStage, until } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';

test('a turn stopped after its process died still reports the calls that were made, and makes none', async () => {
  const runs: string[] = [];
  const book = defineTool({
    name: 'book',
    description: 'books',
    schema: z.object({}),
    async run(_, { effect }) {
      runs.push(effect);
      if (runs.length === 2) await new Promise(() => undefined);
      return 'booked';
    },
  });
  const agents = () => [
    { id: 'bo', model: byStep(asks(['book', {}]), asks(['book', {}]), says('never said')), tools: ['book'] },
  ];
  const driver = await openDriver();
  const first = mortal(driver);
  const before = await openStage({ driver: first.driver, tools: [book], agents: agents() });
  await before.say('c', 'go', ['bo']);
  await until('the second booking', () => runs.length === 2);
  first.kill();

  const address = { tenant: 'default', conversation: 'c', agent: 'bo' };
  expect(await driver.requestAbort(address, 'c:bo:1')).toBe(true);
  const after = await openStage({ driver, tools: [book], agents: agents() });
  await after.quiet();
  expect(runs).toHaveLength(2);
  const events = await after.events('c');
  expect(events.filter(({ kind }) => kind === 'tool.result')).toMatchObject([
    { id: 'c:bo:1:result:0.0', body: { outcome: 'done', content: 'booked' } },
    { id: 'c:bo:1:result:1.0', body: { outcome: 'lost' } },
  ]);
  expect(events.at(-1)).toMatchObject({ kind: 'turn.aborted', turn: 'c:bo:1' });
  expect(await after.check('c', { cancelled: ['c:bo:1'] })).toEqual([]);
});
