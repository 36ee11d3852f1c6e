import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { withoutText } from './hover.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');

test('every public symbol, and every field of a public type, has a text on hover', () => {
  const { folder, files } = buildTypes();
  expect(withoutText(path.join(folder, 'tsconfig.json'), files)).toEqual([]);
});

test('a symbol and a field without a text are named', () => {
  const folder = scratch();
  const bare = `/** Said. */\nexport interface Said { field: string; kind: 'tag' }\nexport declare function bare(): Said;\n`;
  writeFileSync(path.join(folder, 'index.d.ts'), bare);
  writeProject(folder, ['index.d.ts']);
  const missing = withoutText(path.join(folder, 'tsconfig.json'), [path.join(folder, 'index.d.ts')]);
  expect(missing).toEqual(['Said.field', 'bare']);
});

/** The types of the package as they are packed, with the files that its `exports` name. */
function buildTypes(): { folder: string; files: string[] } {
  const folder = scratch();
  const tsc = path.join(ROOT, 'node_modules/.bin/tsc');
  const out = path.join(folder, 'dist');
  execFileSync(tsc, ['-p', 'tsconfig.build.json', '--emitDeclarationOnly', '--outDir', out], { cwd: ROOT });
  const { exports } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
    exports: Record<string, string | { types: string }>;
  };
  const files = Object.values(exports).flatMap((entry) => (typeof entry === 'string' ? [] : [entry.types]));
  writeProject(folder, files);
  return { folder, files: files.map((file) => path.join(folder, file)) };
}

function writeProject(folder: string, files: readonly string[]): void {
  const config = { extends: path.join(ROOT, 'tsconfig.json'), files, include: [] };
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(config));
}

/** Within the checkout, so that the types find those of other packages. */
function scratch(): string {
  const folder = mkdtempSync(path.join(ROOT, 'node_modules/.troupe-types-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
