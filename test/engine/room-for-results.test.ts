import { expect, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { invalidities } from '../support/check-prompt.ts';
import { mind, of, ask } from '../support/compaction-stage.ts';
import { asks, says } from '../support/engine-models.ts';
import { openStage, type Stage } from '../support/engine-stage.ts';
import { estimateTokens } from '../../src/context/budget/tokens.ts';

/** A file whose lines all differ, so that it is seen which of them are shown. */
function fileOf(n: number, characters: number): string {
  const lines: string[] = [];
  for (let line = 0, length = 0; length < characters; line += 1) {
    lines.push(
      `file ${n}, line ${line}: the keeper of drawer ${(line * 7) % 97} has signed for book ${line}`,
    );
    length += (lines.at(-1)?.length ?? 0) + 1;
  }
  return lines.join('\n');
}

const read = defineTool({
  name: 'read',
  description: 'Reads a file.',
  schema: z.object({ n: z.number(), characters: z.number() }),
  run: ({ n, characters }) => fileOf(n, characters),
});

/** A turn whose only step reads so many files, and the results as the model is shown them next. */
async function reads(files: number, characters: number, contextWindow: number) {
  const all = Array.from({ length: files }, (_, n): [string, unknown] => ['read', { n, characters }]);
  const bo = mind({ turn: ({ trace }) => (trace.step === 1 ? asks(...all) : says('I have read them')) });
  const agent = { id: 'bo', model: bo, tools: ['read'], contextWindow, maxOutputTokens: 1_000 };
  const stage = await openStage({ tools: [read], agents: [agent] });
  await ask(stage, 'compare the files');
  const messages = bo.asked().at(-1)?.messages ?? [];
  const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
  return { stage, bo, messages, results };
}

async function endOf(stage: Stage) {
  return [(await of(stage, 'turn.done')).length, await of(stage, 'turn.failed')];
}

test('six files read in one step share the room of a small window: head, tail and the id of each', async () => {
  const { stage, bo, messages, results } = await reads(6, 40_000, 16_000);
  expect(await endOf(stage)).toEqual([1, []]);
  expect(bo.asked()).toHaveLength(2);
  expect(invalidities(messages)).toEqual([]);
  for (const [n, text] of results.entries()) {
    expect(text).toContain(`file ${n}, line 0:`);
    expect(text.trimEnd().endsWith(fileOf(n, 40_000).split('\n').at(-1) ?? '')).toBe(true);
    expect(text).toMatch(
      /^\[… \d+ of 40\d{3} bytes not shown; all of it: read_artifact with id @artifact\/c:bo:1\.0\.\d …\]$/m,
    );
    expect(estimateTokens(text)).toBeGreaterThan(1_000);
  }
  const used = results.reduce((sum, text) => sum + estimateTokens(text), 0);
  expect(used).toBeGreaterThan(8_000);
  expect(await stage.check('c')).toEqual([]);
});

test('thirty-four results that together exceed the window are shortened, and the turn goes on', async () => {
  const { stage, results } = await reads(34, 8_000, 64_000);
  expect(await endOf(stage)).toEqual([1, []]);
  expect(results).toHaveLength(34);
  for (const [n, text] of results.entries()) {
    expect(text).toContain(`file ${n}, line 0:`);
    expect(text).toMatch(/read_artifact with id @artifact\/c:bo:1:result:0\.\d+ …\]/);
  }
});

test('sixty results in a small window keep their ids before the turn would fail', async () => {
  const { stage, results } = await reads(60, 8_000, 16_000);
  expect(await endOf(stage)).toEqual([1, []]);
  expect(results).toHaveLength(60);
  for (const text of results) expect(text).toContain('read_artifact with id @artifact/c:bo:1:result:0.');
});
