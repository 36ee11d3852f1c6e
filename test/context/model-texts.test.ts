import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { countTokens } from '../../src/context/budget/tokens.ts';
import { TEXTS } from '../../src/events/model-texts.ts';
import { plainSchema } from '../../src/providers/plain-schema.ts';
import { builtinTools } from '../../src/tools/builtin/index.ts';
import { expectGolden } from '../support/golden-prompt.ts';

const GOLDEN = fileURLToPath(new URL('../golden/', import.meta.url));

type Leaf = string | ((...given: never[]) => string);
type Tree = { readonly [key: string]: Leaf | Tree };

/** Each text by its path; functions with `…` for what is filled in. */
function textsIn(tree: Tree, path = ''): [name: string, text: string][] {
  return Object.entries(tree).flatMap(([key, value]): [string, string][] => {
    const name = path === '' ? key : `${path}.${key}`;
    if (typeof value === 'string') return [[name, value]];
    if (typeof value === 'function')
      return [[name, (value as (...given: string[]) => string)('…', '…', '…')]];
    return textsIn(value, name);
  });
}

const ALL = textsIn(TEXTS);

test('every text that models are told stands in one file, with its tokens', async () => {
  const texts = ALL.map(([name, text]) => `--- ${name} (${countTokens(text)} tokens)\n${text}`);
  const tools = builtinTools('extract').map(({ name, description, parameters }) => {
    const sent = JSON.stringify({ name, description, parameters: plainSchema(parameters) });
    return `--- tool ${name} (${countTokens(sent)} tokens with its schema)\n${description}`;
  });
  await expectGolden(`${[...texts, ...tools].join('\n\n')}\n`, 'texts');
});

const LONGEST_SENTENCE = 45;
/** Words that stood in such texts and were no English that is understood at once. */
const RIDDLES = /called off|give nothing on|before its eyes|held to it|still at it|was told holds|please/i;

test('sentences are short, and none is a riddle', () => {
  const tools = builtinTools('extract').map(({ name, description }): [string, string] => [name, description]);
  for (const [name, text] of [...ALL, ...tools]) {
    expect([name, RIDDLES.exec(text)?.[0]]).toEqual([name, undefined]);
    for (const sentence of text.split(/(?<=[.:;?!])\s/)) {
      const words = sentence.split(/\s+/).length;
      expect([name, sentence, words <= LONGEST_SENTENCE]).toEqual([name, sentence, true]);
    }
  }
});

/** Shown elsewhere: they need a second process, a folder of skills, or a window without room. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'live.roster': 'test/engine/baseline.test.ts',
  'system.skills': 'test/scenarios/skills.test.ts',
  'turn.nothingSaid': 'test/context/small-windows.test.ts',
};

test('a golden file shows each in a full prompt', () => {
  const prompts = readdirSync(GOLDEN)
    .filter((file) => file !== 'texts.txt')
    .map((file) => readFileSync(GOLDEN + file, 'utf8'))
    .join('\n');
  const missing = ALL.flatMap(([name, text]) => {
    const [longest = ''] = text.split('…').toSorted((a, b) => b.length - a.length);
    if (name in ELSEWHERE) return [];
    return prompts.includes(longest.split('\n')[0]?.trim() ?? '') ? [] : [name];
  });
  expect(missing).toEqual([]);
});
