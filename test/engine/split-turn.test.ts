import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { invalidities } from '../support/check-prompt.ts';
import { asks, says, shown } from '../support/engine-models.ts';
import { openStage } from '../support/engine-stage.ts';
import { ask, mind, of, progress, prose, small } from '../support/compaction-stage.ts';

describe('a turn that outgrows its window', () => {
  const note = defineTool({
    name: 'note',
    description: 'notes',
    schema: z.object({ text: z.string() }),
    run: () => 'noted',
  });
  const work: Parameters<typeof mind>[0] = {
    turn: ({ trace }) =>
      trace.step <= 30 ? asks(['note', { text: prose(trace.step, 1_200) }]) : says('all noted'),
  };

  test('is split: the model summarises its early steps, and it continues behind them', async () => {
    const bo = mind({
      ...work,
      summary: () =>
        says(
          'Notes w1z and those after it were taken, one after the other, as Ana had asked for in her message.',
        ),
    });
    const stage = await openStage({ tools: [note], agents: [small('bo', bo, { tools: ['note'] })] });
    await ask(stage, 'take thirty notes');
    const [first] = bo.summaries();
    expect(shown(first)).toContain('take thirty notes');
    expect(shown(first)).toContain('w1z');
    expect(first?.tools).toEqual([]);
    const splits = (await of(stage, 'baseline')).flatMap(({ body }) => body.adopts?.turn ?? []);
    expect(splits[0]?.text).toBe(
      'Notes w1z and those after it were taken, one after the other, as Ana had asked for in her message.',
    );
    const last = bo.asked().at(-1);
    expect(invalidities(last?.messages ?? [])).toEqual([]);
    expect(shown(last)).toContain('take thirty notes');
    expect(shown(last)).toContain('as Ana had asked');
    expect(JSON.stringify(last?.messages)).toContain('w30z');
    expect(JSON.stringify(last?.messages)).not.toContain('w2z');
    expect((await of(stage, 'message')).at(-1)?.body.content).toBe('all noted');
    expect((await stage.troupe.promptOf('c:bo:1')).verified).toBe(true);
    expect((await stage.troupe.promptOf('c:bo:1', 25)).verified).toBe(true);
    expect(await stage.check('c')).toEqual([]);
  });

  test('is split without the model if that writes no summary', async () => {
    const bo = mind({ ...work, summary: () => says('') });
    const stage = await openStage({ tools: [note], agents: [small('bo', bo, { tools: ['note'] })] });
    await ask(stage, 'take thirty notes');
    const [failed] = await progress(stage, 'failed');
    expect(failed?.body).toMatchObject({
      strategy: 'trim',
      message: expect.stringContaining('rejected: empty'),
    });
    expect((await of(stage, 'message')).at(-1)?.body.content).toBe('all noted');
  });
});
