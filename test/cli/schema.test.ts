import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { agentsFileSchema } from '../../src/library/config/agents-schema.ts';
import { parseTroupe } from '../../src/library/config/agents-file.ts';
import { projectFiles } from '../../src/cli/init/project-files.ts';
import { AGENTS, workplace } from './harness.ts';

const check = new Ajv2020({ strict: false, validateFormats: false }).compile(agentsFileSchema());
const scripted = { provider: 'scripted', script: 'script.json' };

test('"troupe schema" prints the schema that the agents files of "init" and of these tests satisfy', async () => {
  using place = workplace();
  const { json } = await place.call(['schema', '--json']);
  expect(json).toEqual(JSON.parse(JSON.stringify(agentsFileSchema())));
  expect(check(AGENTS)).toBe(true);
  for (const template of ['agent', 'team'] as const) {
    const file = projectFiles({ template, lang: 'json' })['agents.json'] ?? '';
    expect(file).toContain('"$schema": "./node_modules/troupe/dist/agents.schema.json"');
    const agents: unknown = JSON.parse(file);
    expect([check(agents), check.errors]).toEqual([true, null]);
    expect(parseTroupe(agents).agents.length).toBeGreaterThan(0);
  }
});

test.each([
  ['an unknown field of the file', { agents: [{ id: 'a', ...scripted }], agnets: [] }],
  ['an unknown field of an agent', { agents: [{ id: 'a', instrutions: 'x', ...scripted }] }],
  ['an unknown provider', { agents: [{ id: 'a', provider: 'antropic' }] }],
  ['an agent without a provider', { agents: [{ id: 'a' }] }],
  ['no agents', { defaults: {} }],
  ['a wrong type', { agents: [{ id: 'a', tools: 'handoff', ...scripted }] }],
])('the schema refuses %s, as the loader does', (_, definition) => {
  expect(check(definition)).toBe(false);
  expect(() => parseTroupe(definition)).toThrow(/problem/);
});
