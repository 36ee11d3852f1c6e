import { expect, test } from 'vitest';
import { playSmallWindow } from '../../score/small-window/scene.ts';
import { startScriptedModel } from '../../score/small-window/scripted-model.ts';

const TURNS = 60;

test.each([
  [2_048, 'repetitive', { written: 0, rejected: {} }],
  [8_192, 'repetitive', { written: 0 }],
  [8_192, 'long', { rejected: {} }],
  [8_192, 'forgetful', { rejected: {} }],
] as const)(
  'in a window of %i tokens every demand stays in every prompt, and agents share compactions (%s summaries)',
  async (window, style, more) => {
    await using recorder = await startScriptedModel(style);
    const figures = await playSmallWindow({ recorder, model: 'small', window, turns: TURNS });
    expect(figures).toMatchObject({
      failed: 0,
      prompts: TURNS,
      keeping: TURNS,
      lost: {},
      silent: 0,
      ...more,
    });
    expect(figures.compactions).toBeGreaterThan(1);
    expect(figures.adopted).toBeGreaterThanOrEqual(figures.compactions / 2);
    expect(figures.summaryShare).toBeLessThanOrEqual(0.25);
    expect(figures.questions).toBeLessThanOrEqual(figures.memories * 0.1);
  },
);
