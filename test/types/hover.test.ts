import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { withoutText } from './hover.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** That every public symbol has one is checked where the types are built: by `scripts/check-pack.ts`. */
test('a symbol and a field without a text are named', () => {
  const folder = scratch();
  const bare = `/** Said. */\nexport interface Said { field: string; kind: 'tag' }\nexport declare function bare(): Said;
/** Of no name. */\nexport declare const shape: { limit: number };
/** Fields of a type without a name. */
export interface Taken extends Pick<typeof shape, 'limit'> {}\n`;
  writeFileSync(path.join(folder, 'index.d.ts'), bare);
  writeProject(folder, ['index.d.ts']);
  const missing = withoutText(path.join(folder, 'tsconfig.json'), [path.join(folder, 'index.d.ts')]);
  expect(missing).toEqual(['Said.field', 'Taken.limit', 'bare']);
});

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
