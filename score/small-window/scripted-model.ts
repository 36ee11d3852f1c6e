import { startFakeOpenAi } from '../../packages/testing/src/index.ts';
import type { ChatBody, ChatRecorder } from './recorder.ts';
import { PERSONA } from './scene.ts';

/** How a scripted model writes summaries. Its answers to people are the same in every style. */
export const SUMMARY_STYLES = ['ordinary', 'long', 'repetitive', 'forgetful'] as const;
export type SummaryStyle = (typeof SUMMARY_STYLES)[number];

const WORDS =
  'first we draw a page with the products then the basket and after it search because people look before they buy'.split(
    ' ',
  );

/** Sentences that differ from one number to the next. */
function proseOf(number: number, words: number): string {
  const stride = 1 + (number % 5);
  return Array.from({ length: words }, (_, n) => WORDS[(number * 7 + n * stride) % WORDS.length]).join(' ');
}

/** What models advise: obligations that no person has stated. */
function answerOf(number: number): string {
  const advice = `@builder should always write a test of step ${number} and must never forget it.`;
  return `${proseOf(number, 60)}. ${advice} ${proseOf(number + 3, 60)}.`;
}

/** A sentence whose words no other number has in this order. */
function sentenceOf(number: number): string {
  const names = ['basket', 'search', 'photo', 'label', 'refund', 'export', 'coupon', 'invoice', 'parcel'];
  const at = (n: number) => names[n % names.length];
  return `In step ${number} @planner chose the ${at(number)} of ${at(number >> 1)} number ${number * 37} before the ${at(number >> 2)}.`;
}

const STYLES: Readonly<Record<SummaryStyle, (number: number) => string>> = {
  ordinary: (number) =>
    [
      '## Goal',
      'Ana wants a small web shop.',
      '## Work',
      ...Array.from({ length: 3 }, (_, n) => `- ${sentenceOf(number + n)}`),
    ].join('\n'),
  long: (number) => Array.from({ length: 60 }, (_, n) => sentenceOf(number * 60 + n)).join(' '),
  repetitive: () => 'The user wants to know what the first step of the shop would be. '.repeat(14),
  forgetful: (number) => `The shop was talked about, and step ${number} comes next. Nothing was decided.`,
};

/** A server whose model answers at some length, gives advice, and writes summaries in the style. */
export async function startScriptedModel(style: SummaryStyle): Promise<ChatRecorder> {
  const server = await startFakeOpenAi(({ number, body }) => {
    const { messages } = body as ChatBody;
    const isTurn = messages.some(({ content }) => content.includes(PERSONA));
    return { text: isTurn ? answerOf(number) : STYLES[style](number), chunk: 2_000 };
  });
  return {
    url: server.url,
    answers: [],
    get requests() {
      return server.requests.map(({ body }) => body as ChatBody);
    },
    [Symbol.asyncDispose]: () => server.close(),
  };
}
