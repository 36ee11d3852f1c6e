import { expect, test } from 'vitest';
import { inOrder, says } from '../support/engine-models.ts';
import { openStage } from '../support/engine-stage.ts';

const LONG = 'the harbour office keeps its books in the second drawer; '.repeat(100);

test('a log that costs a turn too much work fails that turn by name, and other conversations go on', async () => {
  const bo = {
    id: 'bo',
    model: inOrder(says('fine'), says('fine'), says('fine')),
    contextWindow: 8_000,
    maxOutputTokens: 500,
  };
  const stage = await openStage({ agents: [bo], limits: { turnWork: 50_000 } });
  for (let n = 0; n < 30; n++) await stage.say('c', `${n} ${LONG}`, []);
  await stage.say('c', 'What now?', ['bo']);
  await stage.say('d', 'And here?', ['bo']);
  await stage.quiet();

  const failed = (await stage.events('c')).find(({ kind }) => kind === 'turn.failed');
  expect(failed?.body).toMatchObject({ code: 'context_too_costly' });
  expect((await stage.events('d')).at(-1)?.kind).toBe('turn.done');
  expect(stage.warnings).toEqual([]);
});

test('a log of the same size within the limit is answered', async () => {
  const bo = {
    id: 'bo',
    model: inOrder(says('fine'), says('fine'), says('fine')),
    contextWindow: 8_000,
    maxOutputTokens: 500,
  };
  const stage = await openStage({ agents: [bo] });
  for (let n = 0; n < 30; n++) await stage.say('c', `${n} ${LONG}`, []);
  await stage.say('c', 'What now?', ['bo']);
  await stage.quiet();
  expect((await stage.events('c')).at(-1)?.kind).toBe('turn.done');
});
