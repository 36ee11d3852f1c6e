import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { loadAgentsFile } from '../../src/library/config/load-agents-file.ts';
import { workplace } from '../cli/harness.ts';

/** With a name that is written differently in a URL. */
const dir = mkdtempSync(path.join(tmpdir(), 'troupe (agents files)-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** What loading a file with this text says, with the folder left out. */
async function said(name: string, text: string): Promise<string> {
  const file = path.join(dir, name);
  writeFileSync(file, text);
  return loadAgentsFile(file).then(
    () => 'nothing',
    (error: Error) => error.message.replaceAll(`${dir}/`, ''),
  );
}

const model = `"provider": "scripted", "script": "s.json"`;

test.each([
  ['a JSON file that ends too early', 'a.json', '{\n "agents": [\n', /^cannot load a\.json:2: /],
  [
    'a comma too many',
    'b.json',
    `{\n "agents": [\n  { "id": "a", ${model} },\n ]\n}`,
    /^cannot load b\.json:4: /,
  ],
  [
    'an unknown field in JSON',
    'c.json',
    `{\n "agents": [\n  { "id": "a", ${model},\n    "instrutions": "x" }\n ]\n}`,
    /c\.json:4 agents\[0\]\.instrutions: .*instructions/,
  ],
  [
    'an unknown tool in JSON',
    'd.json',
    `{\n "agents": [\n  { "id": "a", ${model},\n    "tools": [\n "handof"] }\n ]\n}`,
    /d\.json:5 agents\[0\]\.tools\[0\]: there is no tool "handof"/,
  ],
  [
    'a missing provider: the line of its agent',
    'e.json',
    '{\n "agents": [\n  { "id": "a" }\n ]\n}',
    /e\.json:3 agents\[0\]\.provider: is missing/,
  ],
  ['wrong YAML', 'f.yaml', 'agents:\n  - id: a\n   provider: scripted\n', /^cannot load f\.yaml:3: /],
  ['a block twice in YAML', 'h.yaml', 'agents:\n  - id: a\nagents:\n  - id: b\n', /^cannot load h\.yaml:3: /],
  [
    'an unknown provider in YAML',
    'g.yaml',
    'agents:\n  - id: a\n    provider: antropic\n',
    /g\.yaml:3 agents\[0\]\.provider: there is no provider "antropic"; did you mean "anthropic"/,
  ],
  [
    'a module that throws',
    'i.ts',
    'export const a = 1;\nthrow new Error("no key");\n',
    /^cannot load i\.ts:2: no key/,
  ],
  [
    'a module without agents',
    'j.ts',
    'export const a = 1;\n',
    /^cannot load j\.ts: it exports neither "troupe" nor/,
  ],
])('%s', async (_, name, text, expected) => {
  expect(await said(name, text)).toMatch(expected);
});

test('a YAML agents file is loaded', async () => {
  const file = path.join(dir, 'agents.yaml');
  writeFileSync(file, 'agents:\n  - id: a\n    provider: scripted\n    script: { rules: [{ reply: hi }] }\n');
  expect(await loadAgentsFile(file)).toMatchObject({ agents: [{ id: 'a', provider: 'scripted' }] });
});

test.each([
  ['aprove', 'approve'],
  ['sned', 'send'],
])('the mistyped command %s is told the nearest one', async (typed, nearest) => {
  using place = workplace();
  const { code, err } = await place.call([typed, 'c1']);
  expect(code).toBe(2);
  expect(err).toContain(`unknown command '${typed}'. Did you mean "${nearest}"? (see troupe --help)`);
});
