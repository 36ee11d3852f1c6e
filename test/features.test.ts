import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const ROOT = path.dirname(import.meta.dirname);
const LIST = 'src/actors/features/features.ts';
const FEATURES = [
  ...readFileSync(path.join(ROOT, LIST), 'utf8').matchAll(/from '\.\/(\w+)\/feature\.ts'/g),
].map(([, name = '']) => name);

/** A tool call, its result and a reply, read back after a restart. */
const PLAY = `
import * as z from 'zod';
import { createTroupe, defineProvider, defineTool } from './src/index.ts';
const usage = { input: 9, output: 3, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
const model = defineProvider({
  name: 'fake',
  async *read({ messages }) {
    if (messages.some(({ role }) => role === 'tool')) {
      yield { type: 'text', delta: 'It is Friday.' };
      yield { type: 'done', stop: 'end', usage };
      return;
    }
    yield { type: 'call', call: { id: 'one', name: 'day', args: '{}' } };
    yield { type: 'done', stop: 'calls', usage };
  },
});
const day = defineTool({ name: 'day', description: 'The day', schema: z.object({}), run: () => 'Friday' });
const agent = { id: 'bo', instructions: 'Answer.', provider: 'custom', adapter: 'fake', model: 'fake', tools: ['day'] };
const company = { agents: [agent], tools: [day], providers: { fake: model } };
const open = () => createTroupe(company, { data: './data', onWarning: (error) => { throw error; } });
{
  await using troupe = await open();
  await troupe.send('c', { author: { kind: 'user', id: 'ana', name: 'Ana' }, to: ['bo'], content: 'Which day is it?' });
  await troupe.idle();
}
await using troupe = await open();
for (const event of (await troupe.events('c')).events)
  if (event.kind === 'message') console.log(event.author.id + ': ' + event.body.content);
`;

let copy = '';
beforeAll(() => {
  copy = mkdtempSync(path.join(tmpdir(), 'troupe-features-'));
  for (const part of ['src', 'package.json', 'tsconfig.json'])
    cpSync(path.join(ROOT, part), path.join(copy, part), { recursive: true });
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(copy, 'node_modules'));
  writeFileSync(path.join(copy, 'play.ts'), PLAY);
});
afterAll(() => rmSync(copy, { recursive: true }));

/** Removes the folder and the two lines of each of these; the function puts them back. */
function without(features: readonly string[]): Disposable {
  const before = readFileSync(path.join(ROOT, LIST), 'utf8');
  const isOf = (line: string) =>
    features.some((name) => line.includes(`'./${name}/feature.ts'`) || line.startsWith(`  ${name}, // `));
  const after = before.split('\n').filter((line) => !isOf(line));
  expect(after.length).toBe(before.split('\n').length - 2 * features.length);
  writeFileSync(path.join(copy, LIST), after.join('\n'));
  for (const name of features) rmSync(path.join(copy, 'src/actors/features', name), { recursive: true });
  return {
    [Symbol.dispose]() {
      writeFileSync(path.join(copy, LIST), before);
      for (const name of features)
        cpSync(path.join(ROOT, 'src/actors/features', name), path.join(copy, 'src/actors/features', name), {
          recursive: true,
        });
    },
  };
}

function play(): string {
  rmSync(path.join(copy, 'data'), { recursive: true, force: true });
  return execFileSync(process.execPath, ['play.ts'], { cwd: copy, encoding: 'utf8', timeout: 120_000 });
}

describe('a feature of the turn', () => {
  test('is listed, with every folder that has hooks', () => {
    const folders = readdirSync(path.join(ROOT, 'src/actors/features'), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
      .filter((name) => readdirSync(path.join(ROOT, 'src/actors/features', name)).includes('feature.ts'));
    expect(FEATURES.toSorted()).toEqual(folders.toSorted());
    expect(FEATURES.length).toBeGreaterThan(5);
  });

  test('is imported by the list alone', () => {
    const files = readdirSync(path.join(ROOT, 'src'), { recursive: true, encoding: 'utf8' });
    const found = files
      .filter((file) => file.endsWith('.ts') && path.join('src', file) !== LIST)
      .flatMap((file) => {
        const text = readFileSync(path.join(ROOT, 'src', file), 'utf8');
        const imported = [...text.matchAll(/from '(\.[^']*)'/g)].map(([, to = '']) =>
          path.join(path.dirname(file), to),
        );
        return FEATURES.filter((name) => !file.startsWith(`actors/features/${name}/`))
          .filter((name) => imported.some((to) => to.startsWith(`actors/features/${name}/`)))
          .map((name) => `src/${file} imports ${name}`);
      });
    expect(found).toEqual([]);
  });

  test.each(FEATURES)('%s can be deleted: turns go on without it', (name) => {
    using _ = without([name]);
    expect(play()).toBe('ana: Which day is it?\nbo: It is Friday.\n');
  });

  test('and with all of them deleted, the rest compiles and takes its turns', () => {
    using _ = without(FEATURES);
    const args = ['--checkers', '1', '--noEmit', '--declaration', 'false', '-p', '.'];
    const bin = path.join(ROOT, 'node_modules/.bin/tsc');
    expect(runOf(bin, args)).toBe('');
    expect(play()).toBe('ana: Which day is it?\nbo: It is Friday.\n');
  }, 240_000);
});

function runOf(bin: string, args: string[]): string {
  try {
    return execFileSync(bin, args, { cwd: copy, encoding: 'utf8' });
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}
