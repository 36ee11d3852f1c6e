import { expect, test } from 'vitest';
import { startFakeOpenAi } from '../../src/testing/index.ts';
import type { ChatBody } from '../../score/small-window/recorder.ts';
import { playSmallWindow } from '../../score/small-window/scene.ts';

const WORDS =
  'first we draw a page with the products then the basket and after it search because people look before they buy'.split(
    ' ',
  );

function answerOf(number: number): string {
  const stride = 1 + (number % 5);
  return Array.from({ length: 50 }, (_, n) => WORDS[(number * 7 + n * stride) % WORDS.length]).join(' ');
}

/** Answers at some length, as small models do, and sometimes repeats itself in a summary. */
async function startSmallModel() {
  const server = await startFakeOpenAi(({ number, body }) => {
    const { messages } = body as ChatBody;
    const isTurn = messages.some(({ content }) => content.includes('You are one of three'));
    if (isTurn) return { text: answerOf(number), chunk: 400 };
    if (number % 2 === 0)
      return {
        text: 'The user wants to know what the first step of the shop would be. '.repeat(14),
        chunk: 400,
      };
    return {
      text: `The shop was talked about, and step ${number} comes next. Nothing else was decided by anybody.`,
      chunk: 400,
    };
  });
  return {
    url: server.url,
    get requests() {
      return server.requests.map(({ body }) => body as ChatBody);
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
}

test.each([
  [2_048, 60],
  [8_192, 120],
])(
  'in a window of %i tokens every demand stays in every prompt, and agents share summaries',
  async (window, turns) => {
    await using recorder = await startSmallModel();
    const figures = await playSmallWindow({ recorder, model: 'small', window, turns });
    expect(figures).toMatchObject({ failed: 0, prompts: turns, keeping: turns, lost: {} });
    expect(figures.compactions).toBeGreaterThan(1);
    expect(figures.adopted).toBeGreaterThanOrEqual(figures.compactions / 2);
    expect(figures.summaryShare).toBeLessThanOrEqual(0.25);
  },
);
