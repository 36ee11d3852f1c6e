import { expect, test } from 'vitest';
import { says } from '../support/engine-models.ts';
import { openStage, until } from '../support/engine-stage.ts';
import { fill, mind, of, pass, progress, small, SUMMARY } from '../support/compaction-stage.ts';

test('a model may take long for a summary as long as words arrive', async () => {
  const words = SUMMARY.split(' ');
  const next: PromiseWithResolvers<void>[] = words.map(() => Promise.withResolvers<void>());
  const bo = mind({
    async *summary() {
      for (const [index, word] of words.entries()) {
        await next[index]?.promise;
        yield { type: 'text', delta: `${word} ` };
      }
      for (const event of says('')) if (event.type !== 'start') yield event;
    },
  });
  const stage = await openStage({ agents: [small('bo', bo)] });
  await fill(stage, 14);
  await stage.say('c', 'and now?', ['bo']);
  await until('the summary is asked for', () => bo.summaries().length === 1);
  for (const word of next) {
    await pass(stage, 20_000);
    word.resolve();
    await pass(stage, 1_000);
  }
  await stage.quiet();
  expect(words.length * 20_000).toBeGreaterThan(600_000);
  expect(await progress(stage, 'failed')).toEqual([]);
  expect(await of(stage, 'compaction')).toMatchObject([{ body: { strategy: 'summary' } }]);
  expect(await stage.check('c')).toEqual([]);
});

test('a summariser that thinks for minutes is not silent', async () => {
  const bo = mind({
    async *summary() {
      for (let minutes = 0; minutes < 5; minutes += 1) {
        await stage.clock.sleep(60_000);
        yield { type: 'thinking', delta: 'hm' };
      }
      yield* says(SUMMARY);
    },
  });
  const stage = await openStage({ agents: [small('bo', bo)] });
  await fill(stage, 14);
  await stage.say('c', 'and now?', ['bo']);
  await until('the summary is asked for', () => bo.summaries().length === 1);
  await stage.quiet();
  expect(await progress(stage, 'failed')).toEqual([]);
  expect(await of(stage, 'compaction')).toMatchObject([{ body: { strategy: 'summary' } }]);
  expect(await stage.check('c')).toEqual([]);
});
