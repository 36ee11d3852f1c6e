import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const ROOT = path.dirname(import.meta.dirname);
const EVENTS = 'src/events/event.ts';
const ASPECTS = 'src/events/aspects.ts';

/** Copies the sources and applies the changes that add an event kind. */
function copyWith(changes: Record<string, (text: string) => string>): string {
  const dir = mkdtempSync(path.join(tmpdir(), 'troupe-kind-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  for (const part of ['src', 'package.json', 'tsconfig.json', '.oxlintrc.json'])
    cpSync(path.join(ROOT, part), path.join(dir, part), { recursive: true });
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(dir, 'node_modules'));
  for (const [file, change] of Object.entries(changes)) {
    const before = readFileSync(path.join(dir, file), 'utf8');
    expect(change(before)).not.toBe(before);
    writeFileSync(path.join(dir, file), change(before));
  }
  return dir;
}

/** The files that a tool complains about; empty if it has no complaint. Its output must be plain: CI turns colours on. */
async function complaints(dir: string, tool: string, args: string[]): Promise<string[]> {
  const output = await new Promise<string>((resolve) => {
    const bin = path.join(ROOT, 'node_modules/.bin', tool);
    execFile(bin, args, { cwd: dir, maxBuffer: 64 * 1_024 * 1_024 }, (_, stdout, stderr) =>
      resolve(stdout + stderr),
    );
  });
  return [...new Set(output.match(/src\/[\w/.-]+\.ts(?=[(:])/g))].toSorted();
}

const compile = (dir: string) =>
  complaints(dir, 'tsc', ['--noEmit', '--pretty', 'false', '-p', 'tsconfig.json']);
const lint = (dir: string) => complaints(dir, 'oxlint', ['--type-aware', '--format', 'unix', 'src']);

const withKind = (text: string) =>
  text.replace('  message: MessageBody,', "  message: MessageBody,\n  'fixture.kind': MessageBody,");

test('a kind without any rule fails to compile in every place that lists all kinds', async () => {
  const dir = copyWith({ [EVENTS]: withKind });
  const lists = [ASPECTS, 'src/events/import-rule.ts', 'src/projection/row.ts'];
  expect(await compile(dir)).toEqual(expect.arrayContaining(lists));
});

/** A function returns early for these kinds, before its switch over the others. */
const TAKEN_FIRST = ["'announced'", "'turnEnd'", "'taskOpening'", "'taskEnd'", "'upkeep'"];

test('a kind with an aspect is refused by every switch over that aspect', async () => {
  const all = /export type Aspect =([^;]+);/.exec(readFileSync(path.join(ROOT, ASPECTS), 'utf8'))?.[1] ?? '';
  const aspects = all.match(/'\w+'/g) ?? [];
  const named = new Set<string>();
  let dir = ROOT;
  for (const some of [aspects, aspects.filter((aspect) => !TAKEN_FIRST.includes(aspect))]) {
    dir = copyWith({
      [EVENTS]: withKind,
      [ASPECTS]: (text) =>
        text.replace('  message: [', `  'fixture.kind': [${some.join(', ')}],\n  message: [`),
    });
    for (const file of [...(await compile(dir)), ...(await lint(dir))]) named.add(file);
  }
  const switches = switchesIn(dir);
  expect(switches.length).toBeGreaterThan(15);
  expect(switches.filter((file) => !named.has(file))).toEqual([]);
});

/** The files with a switch over the remaining kinds of an aspect. */
function switchesIn(dir: string): string[] {
  const files = readdirSync(path.join(dir, 'src'), { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => file.endsWith('.ts'))
    .map((file) => path.posix.join('src', file))
    .filter((file) => {
      const text = readFileSync(path.join(dir, file), 'utf8');
      return text.includes('isAbout(') && /switch \(\w+\.kind\)/.test(text);
    });
}
