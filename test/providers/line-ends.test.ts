import { expect, test } from 'vitest';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import { collectEvents, sampleRequest, textOf } from '../../packages/testing/src/provider-conformance.ts';
import { cpuMsOf } from '../support/cpu-ms.ts';
import { FRAMES, startHostileVendor } from '../support/hostile-vendor.ts';

const { head, text } = FRAMES['openai-compatible'];
const ANSWER = `: hello\n\n${head}${text('one\r\ntwo')}data: {"choices":[{"delta":{},\ndata: "finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`;
const MOST_BYTES = 16_777_216;
/** One event. */
const MANY_LINES = ':\n'.repeat(1_000_000);

async function answered(body: Iterable<string>) {
  await using server = await startHostileVendor(() => body, MOST_BYTES);
  return await collectEvents(
    createOpenAiCompatible({ baseUrl: server.url, apiKey: 'none' }),
    sampleRequest(),
  );
}

test.each([
  ['line feeds', '\n'],
  ['carriage returns', '\r'],
  ['both', '\r\n'],
])('lines may end with %s, wherever the answer is cut', async (_, end) => {
  const body = ANSWER.replaceAll('\n', end);
  for (const cut of [body.length, 1, 7]) {
    const pieces = Array.from({ length: Math.ceil(body.length / cut) }, (__, at) =>
      body.slice(at * cut, (at + 1) * cut),
    );
    const events = await answered(pieces);
    expect(events.at(-1)).toMatchObject({ type: 'done', stop: 'end' });
    expect(textOf(events)).toBe('one\r\ntwo');
  }
});

test.each([
  ['of either kind', `${MANY_LINES}:\r\n`],
  ['of carriage returns', MANY_LINES.replaceAll('\n', '\r')],
])('an event of many lines, with ends %s, costs what its bytes cost', async (_, lines) => {
  const cpuMs = await cpuMsOf(async () => {
    const body = `${lines}\n${ANSWER}`;
    expect(textOf(await answered([body]))).toBe('one\r\ntwo');
  });
  // It takes 0.1 s; a search for the other line end from each line takes 6 s.
  expect(cpuMs).toBeLessThan(2_500);
});
