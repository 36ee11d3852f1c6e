import { expect, test } from 'vitest';
import * as z from 'zod';
import { KEPT_MS } from '../../src/actors/actor/engine-deps.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { mortal } from '../support/engine-driver.ts';
import { asks, byStep, says } from '../support/engine-models.ts';
import { openStage, until } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';

test('a turn abandoned for longer than its journal is kept ends as failed, and its calls are not repeated', async () => {
  const driver = await openDriver();
  let runs = 0;
  const pay = defineTool({
    name: 'pay',
    description: 'pays, once',
    schema: z.object({}),
    async run() {
      runs += 1;
      return new Promise<string>(() => undefined);
    },
  });
  const model = byStep(asks(['pay', {}]), says('paid'));
  const agents = [{ id: 'bo', model, tools: ['pay'] }];
  const doomed = mortal(driver);
  const first = await openStage({ driver: doomed.driver, agents, tools: [pay] });
  await first.say('c', 'pay the bill', ['bo']);
  await until('the tool runs', () => runs === 1);
  doomed.kill();

  await first.clock.advance(KEPT_MS);
  await driver.expire('journal', first.clock.now());
  await driver.expire('effect', first.clock.now());
  const later = await openStage({ driver, clock: first.clock, agents, tools: [pay] });
  await later.quiet();
  expect(runs).toBe(1);
  const failed = (await later.events('c')).find(({ kind }) => kind === 'turn.failed');
  expect(failed?.body).toMatchObject({ code: 'poison', covers: [1] });
  expect(await later.check('c')).toEqual([]);
});
