import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Question, Told } from './compile.ts';
import { ASKED, BUILT, MISTAKES, moduleOf, RIGHT } from './mistakes.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');
const SIZES = [1, 2, 12];
const COMPILERS = ['typescript-5.6', 'typescript-5.9', 'typescript'];

/** Within the checkout, so that the types find those of other packages. */
const folder = mkdtempSync(path.join(ROOT, 'node_modules/.troupe-types-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The part of the index that is asked about: all of it would take the compilers half as long again. */
const PARTS = {
  'runtime/create-troupe.ts': 'createTroupe',
  'config/troupe-input.ts': 'defineTroupe',
  'config/agents-file.ts': 'type TroupeInput',
  '../tools/tool.ts': 'defineTool',
};
const index = './troupe.ts';
const parts = Object.entries(PARTS).map(([file, name]) => {
  const from = path.relative(folder, path.join(ROOT, 'src/library', file));
  return `export { ${name} } from '${from}';`;
});
writeFileSync(path.join(folder, index), parts.join('\n'));
let written = 0;
/** Every second company is only defined. */
function write(company: Parameters<typeof moduleOf>[0], size: number) {
  const open = written % 2 === 0 ? 'createTroupe' : 'defineTroupe';
  const { text, at, length } = moduleOf(company, { size, open, index });
  const module = path.join(folder, `${(written += 1)}.ts`);
  writeFileSync(module, open === 'createTroupe' ? text.replace(`= ${open}(`, `= await ${open}(`) : text);
  return { module, size, at: at + (text.includes('= createTroupe(') ? 'await '.length : 0), length };
}

const ofSizes = <C extends Parameters<typeof moduleOf>[0]>(companies: readonly C[]) =>
  companies.flatMap((company, at) =>
    SIZES.map((size, nth) => ({ ...company, ...write(company, size), isFirst: nth === at % SIZES.length })),
  );
/** Compilers in JavaScript take long: they are asked for each company in one size. */
const judgedBy = <C extends { isFirst: boolean }>(name: string, companies: readonly C[]) =>
  name === 'typescript' ? companies : companies.filter(({ isFirst }) => isFirst);
const mistakes = ofSizes(MISTAKES);
const asked = ofSizes(ASKED);
const right = ofSizes([RIGHT, BUILT]);

const answers = new Map<string, Told>();
beforeAll(async () => {
  const config = path.join(folder, 'tsconfig.json');
  const compilerOptions = { target: 'es2022', lib: ['es2023', 'esnext.disposable'], noUnusedLocals: false };
  const files = [...mistakes, ...right, ...asked].map(({ module }) => module);
  const settings = { extends: path.join(ROOT, 'tsconfig.json'), compilerOptions, files, include: [] };
  writeFileSync(config, JSON.stringify(settings));
  await Promise.all(COMPILERS.map(async (name) => answers.set(name, await ask(name, config))));
});

async function ask(name: string, config: string): Promise<Told> {
  const modules = judgedBy(name, [...mistakes, ...right]).map(({ module }) => module);
  const question: Question = { config, modules, asked: judgedBy(name, asked) };
  const file = path.join(folder, `${name}.json`);
  writeFileSync(file, JSON.stringify(question));
  const program = path.join(import.meta.dirname, 'compile.ts');
  const options = { maxBuffer: 64 * 1_024 * 1_024, cwd: ROOT };
  const { stdout } = await promisify(execFile)(process.execPath, [program, name, file], options);
  return JSON.parse(stdout) as Told;
}

describe.each(COMPILERS)('%s', (name) => {
  const told = () => answers.get(name) as Told;
  const errorsIn = (module: string) => told().errors.filter((error) => error.module === module);

  test.each(judgedBy(name, mistakes))(
    '$what, in a company of $size, is one error at its place',
    ({ module, at, words }) => {
      const errors = errorsIn(module);
      expect(errors).toEqual([
        { module, at, length: expect.any(Number), text: expect.stringContaining(words) },
      ]);
    },
  );

  test.each(judgedBy(name, right))('a company of $size without a mistake has no error', ({ module }) => {
    expect(errorsIn(module)).toEqual([]);
  });

  test('editors offer the names that exist', () => {
    const places = judgedBy(name, asked);
    const offered = places.map(({ what, size }, at) => ({ what, size, offers: told().offered[at] }));
    expect(offered).toEqual(
      places.map(({ what, size, offers }) => ({ what, size, offers: expect.arrayContaining([...offers]) })),
    );
  });
});

test('the compilers are those that their names say', () => {
  const versions = COMPILERS.map((name) => answers.get(name)?.version.split('.').slice(0, 2).join('.'));
  expect(versions).toEqual(['5.6', '5.9', '7.0']);
});
