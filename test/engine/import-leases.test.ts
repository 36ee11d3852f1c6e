import { expect, test } from 'vitest';
import { mortal, storeAway, tapDriver } from '../support/engine-driver.ts';
import { gated, inOrder, says } from '../support/engine-models.ts';
import { openStage, type Stage } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';

async function exported({ troupe }: Stage): Promise<string> {
  let lines = '';
  for await (const line of troupe.export('c')) lines += `${line.trim()}\n`;
  return lines;
}

async function importInto({ troupe }: Stage, lines: string): Promise<unknown> {
  async function* chunks() {
    yield lines;
  }
  return troupe.import(chunks(), { conversation: 'c', format: 'troupe' });
}

test('an import that the store refused can be repeated at once, and wakes no agent in between', async () => {
  const source = await openStage({ agents: [{ id: 'bo', model: inOrder(says('hi')) }] });
  await source.say('c', 'hello', ['bo']);
  await source.quiet();
  const lines = await exported(source);
  let away = true;
  const driver = tapDriver(await openDriver(), (op, phase) => {
    if (op === 'append' && phase === 'after' && away) throw storeAway('the answer is lost');
  });
  const model = inOrder(says('never asked'));
  const stage = await openStage({ driver, agents: [{ id: 'bo', model }] });
  await expect(importInto(stage, lines)).rejects.toMatchObject({ code: 'store_unavailable' });
  await stage.clock.advance(10_000);
  away = false;
  await importInto(stage, lines);
  await stage.clock.advance(60_000);
  await stage.quiet();
  expect(model.requests).toEqual([]);
  expect(await stage.actor('c', 'bo')).toMatchObject({ owner: '', turnNo: 1 });
});

test('an import into a conversation with an open turn of a killed process is refused', async () => {
  const inner = await openDriver();
  const first = mortal(inner);
  const hung = gated(says('half'), 1);
  const killed = await openStage({ driver: first.driver, agents: [{ id: 'bo', model: hung }] });
  await killed.say('c', 'go', ['bo']);
  await hung.reached();
  first.kill();
  // Disables the sweep, so that nobody resumes the turn first, and starts after the dead lease has expired.
  const unswept = tapDriver(inner, (op) => {
    if (op === 'due') throw storeAway('for the sweeper');
  });
  const stage = await openStage({ driver: unswept, agents: [{ id: 'bo', model: inOrder(says('x')) }] });
  await stage.clock.advance(60_000);
  await expect(importInto(stage, await exported(stage))).rejects.toMatchObject({ code: 'import_invalid' });
  expect(await stage.actor('c', 'bo')).toMatchObject({ owner: '', processed: 0, turn: { id: 'c:bo:1' } });
});
