import { expect, test } from 'vitest';
import * as z from 'zod';
import type { PolicyConstants } from '../../src/library/config/context-settings.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { ask, mind, of, prose, small } from '../support/compaction-stage.ts';
import { asks, says, shown } from '../support/engine-models.ts';
import { openStage } from '../support/engine-stage.ts';

const report = defineTool({
  name: 'report',
  description: 'reports',
  schema: z.object({ n: z.number() }),
  run: async ({ n }) => prose(n, 3_000),
});

/** Calls `report` once in every turn, with its number. */
async function reported(
  turns: number,
  context: { pruneEachTurn?: boolean },
  prune?: PolicyConstants['prune'],
) {
  let turn = 0;
  const bo = mind({
    turn: ({ trace }) => (trace.step === 1 ? asks(['report', { n: (turn += 1) }]) : says('ok')),
  });
  const agents = [small('bo', bo, { contextWindow: 40_000, tools: ['report'] })];
  const stage = await openStage({ tools: [report], agents, context, ...(prune && { policy: { prune } }) });
  for (let n = 1; n <= turns; n++) await ask(stage, `report ${n}`);
  return { bo, stage };
}

test('by default outputs stay while there is room', async () => {
  const { bo, stage } = await reported(4, {}, { turns: 0, protectTokens: 0, minGain: 0 });
  expect(await of(stage, 'prune')).toEqual([]);
  for (const n of [1, 2, 3, 4]) expect(shown(bo.asked().at(-1))).toContain(`w${n}z`);
});

test('an agent can be set to see the outputs of its running turn only', async () => {
  const { bo, stage } = await reported(3, { pruneEachTurn: true });
  const last = shown(bo.asked().at(-1));
  expect(last).toContain('w3z');
  expect(last).not.toContain('w1z');
  expect(last).not.toContain('w2z');
  expect(last.match(/\[the output of report \(\d+ bytes\) was removed/g)).toHaveLength(2);
  const prunes = await of(stage, 'prune');
  expect(prunes.map(({ body }) => [body.reason, body.events.length])).toEqual([
    ['each_turn', 1],
    ['each_turn', 1],
  ]);
  expect(bo.summaries()).toEqual([]);
  expect(await stage.check('c')).toEqual([]);
});

test('the newest turns keep their outputs, and a small gain is not worth a prune', async () => {
  const kept = await reported(4, { pruneEachTurn: true }, { turns: 2 });
  const last = shown(kept.bo.asked().at(-1));
  expect(last).not.toContain('w1z');
  for (const n of [3, 4]) expect(last).toContain(`w${n}z`);
  const rare = await reported(4, { pruneEachTurn: true }, { minGain: 5_000 });
  expect(await of(rare.stage, 'prune')).toEqual([]);
});
