import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findOnPath } from './run-command.ts';

const LAUNCHER = path.join(import.meta.dirname, 'secantus-launcher.py');
const PYTHON = findOnPath('python3');

/** Uses a fake package with the same names and no database: tests the query, not the result. */
describe.skipIf(!PYTHON)('the launcher of SecantusDB', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'troupe-launcher-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  async function launch(storage: string, cli: string) {
    const library = mkdtempSync(path.join(folder, 'library-'));
    const files = { '__init__.py': '', 'storage.py': storage, 'cli.py': cli };
    mkdirSync(path.join(library, 'secantus'));
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(path.join(library, 'secantus', name), text);
    }
    const env = { ...process.env, PYTHONPATH: library };
    return promisify(execFile)(PYTHON ?? 'python3', [LAUNCHER, '--port', '1'], { env });
  }

  const STORAGE = `
class Storage:
    indexed = True

    def _try_index_id_keys(self, db, coll, filter, *, collation=None):
        if not filter or not self.indexed or any(key.startswith("$") for key in filter):
            return None
        return [db, coll, filter, collation]
`;

  test('uses the _id alone of a filter with an _id and operators, and leaves other filters unchanged', async () => {
    const cli = `
import json, sys
from secantus.storage import Storage

def main():
    storage = Storage()
    look = lambda filter: storage._try_index_id_keys("db", "coll", filter, collation="c")
    print(json.dumps(sys.argv[1:]))
    print(json.dumps(look({"_id": 1, "$and": [{"v": 0}]})))
    print(json.dumps(look({"_id": 1, "v": 0})))
    print(json.dumps([look({"$and": [{"_id": 1}]}), look({}), look(None)]))
    storage.indexed = False
    print(json.dumps(look({"_id": 1, "$and": [{"v": 0}]})))
`;
    const { stdout, stderr } = await launch(STORAGE, cli);
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([
      ['--port', '1'],
      ['db', 'coll', { _id: 1 }, 'c'],
      ['db', 'coll', { _id: 1, v: 0 }, 'c'],
      [null, null, null],
      null,
    ]);
    expect(stderr).toBe('');
  });

  test('starts a version with other internals unchanged, with a notice', async () => {
    const { stdout, stderr } = await launch('class Storage: pass', 'def main(): print("started")');
    expect(stdout).toBe('started\n');
    expect(stderr).toMatch(/findAndModify stays slow.*_try_index_id_keys/);
  });
});
