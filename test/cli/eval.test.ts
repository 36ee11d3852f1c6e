import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { runInThisContext } from 'node:vm';
import { expect, test } from 'vitest';
import * as evals from '../../packages/evals/src/index.ts';
import { startMcpHttpServer } from '../support/mcp-http-server.ts';
import { workplace } from './harness.ts';

const PARTS: Readonly<Record<string, unknown>> = { ...evals };
const DOC = path.resolve(import.meta.dirname, '../../docs/how-to/testing.md');
const HANDOFF = { to: 'shipping', goal: 'Find the parcel.', why: 'It is lost.' };
const SCRIPTS = {
  desk: { rules: [{ calls: [{ name: 'handoff', args: HANDOFF }] }] },
  shipping: {
    rules: [
      { when: { contains: 'Bern' }, reply: 'Then it comes tomorrow.' },
      { reply: 'Where do you live?' },
    ],
  },
};

/** A company that follows scripts, or one whose models cannot be reached. */
function company(instructions: string, isOffline: boolean): object {
  const model = (script: object) =>
    isOffline ? { provider: 'anthropic', model: 'claude-sonnet-5' } : { provider: 'scripted', script };
  const desk = { id: 'desk', instructions: 'Hand over.', tools: ['handoff'], ...model(SCRIPTS.desk) };
  const shipping = { id: 'shipping', instructions, ...model(SCRIPTS.shipping) };
  return { agents: [desk, shipping], defaults: { respondWhenUnaddressed: 'desk' } };
}

/** A log of another program, with calls of tools that the company does not have: of the second there is no result. */
const LOST = { id: 'c2', type: 'function', function: { name: 'count', arguments: '{}' } };
const CALL = { id: 'c1', type: 'function', function: { name: 'list', arguments: '{"folder":"/"}' } };
const LOG = {
  messages: [
    { role: 'user', content: 'Which files are there?' },
    { role: 'assistant', content: null, tool_calls: [CALL, LOST] },
    { role: 'tool', tool_call_id: 'c1', content: 'a.txt' },
    { role: 'assistant', content: 'There is a.txt.' },
    { role: 'user', content: 'Thank you.' },
  ],
};

const SUM = { name: 'numbers__add', args: { a: 1, b: 2 } };

/** Runs a written test in this process: another Vitest takes seconds. What it imports must be there. */
async function runWritten(file: string): Promise<void> {
  const text = readFileSync(file, 'utf8');
  const [, names = ''] = /^import \{ (.+) \} from '@troupe\/evals';$/m.exec(text) ?? [];
  const imported = names.split(', ').map((name) => PARTS[name]);
  expect(imported).not.toContain(undefined);
  const body = text.replace(/^import .+$/gm, '').replaceAll('import.meta.url', 'here');
  const load = runInThisContext(`(function (test, expect, here, ${names}) {${body}})`) as (
    ...given: unknown[]
  ) => void;
  let written = () => Promise.reject(new Error('it has no test'));
  load((_: string, run: typeof written) => (written = run), expect, pathToFileURL(file).href, ...imported);
  await written();
}

test('a conversation becomes a test that runs offline, and names the agent whose instructions have changed', async () => {
  using place = workplace({ agents: company('Ask for the address.', false) });
  await place.call(['send', 'parcels', 'My parcel is lost!', '--as', 'mia']);
  await place.call(['send', 'parcels', 'In Bern.', '--as', 'mia', '--to', 'shipping']);
  const base = path.join(place.dir, 'parcels');
  const { code, out } = await place.call(['eval', 'record', 'parcels', '--out', base]);
  expect(code).toBe(0);
  const doc = readFileSync(DOC, 'utf8');
  expect(doc).toContain(out.replaceAll(`${place.dir}/`, '').trim());
  const written = readFileSync(`${base}.test.ts`, 'utf8');
  expect(doc).toContain(written.replace(/'\.\/agents\.\w+'/, "'./agents.ts'"));

  const [, agents = ''] = /new URL\('(\S+)'/.exec(written) ?? [];
  writeFileSync(path.join(place.dir, agents), JSON.stringify(company('Ask for the address.', true)));
  await runWritten(`${base}.test.ts`);
  writeFileSync(path.join(place.dir, agents), JSON.stringify(company('Be brief.', true)));
  await expect(runWritten(`${base}.test.ts`)).rejects.toThrow(
    'the instructions of @shipping have changed since the recording (parcels:shipping:1)',
  );
});

test('an imported log becomes a test, and a test that is there is kept', async () => {
  using place = workplace({ agents: company('Help.', true) });
  await place.call(['import', place.write('log.json', LOG), '--conversation', 'old', '--agent', 'shipping']);
  const file = path.join(place.dir, 'old.test.ts');
  const record = ['eval', 'record', 'old', '--out', file, '--json'];
  expect((await place.call(record)).json).toMatchObject({ moves: 2, answers: 3, calls: 2, isNew: true });
  await runWritten(file);
  writeFileSync(file, readFileSync(file, 'utf8').replace('There is a.txt.', 'There is b.txt.'));
  expect((await place.call(record)).json).toMatchObject({ isNew: false });
  await expect(runWritten(file)).rejects.toThrow('expected that shipping says "There is b.txt."');
});

test('a test of a conversation with a tool server runs once that server is gone', async () => {
  const server = await startMcpHttpServer();
  const script = { rules: [{ when: { step: 1 }, calls: [SUM] }, { reply: 'It is 3.' }] };
  const ofServer = (model: object) => ({
    agents: [{ id: 'desk', tools: ['numbers/*'], ...model }],
    defaults: { respondWhenUnaddressed: 'desk' },
    mcpServers: { numbers: { url: server.url } },
  });
  using place = workplace({ agents: ofServer({ provider: 'scripted', script }) });
  await place.call(['send', 'sums', 'What is 1 and 2?', '--as', 'mia']);
  await place.call(['send', 'sums', 'And again?', '--as', 'mia']);
  await server[Symbol.asyncDispose]();
  const begun = server.trace.length;
  const file = path.join(place.dir, 'sums.test.ts');
  const made = await place.call(['eval', 'record', 'sums', '--out', file, '--json']);
  expect(made.json).toMatchObject({ moves: 2, answers: 4, calls: 2, isNew: true });
  const written = readFileSync(file, 'utf8');
  expect(written).toContain("expect(run).toHaveCalled('desk', 'numbers__add', { a: 1, b: 2 });");
  const [, agents = ''] = /new URL\('(\S+)'/.exec(written) ?? [];
  const offline = ofServer({ provider: 'anthropic', model: 'claude-sonnet-5' });
  writeFileSync(path.join(place.dir, agents), JSON.stringify(offline));
  await runWritten(file);
  expect(server.trace).toHaveLength(begun);
});

test('a conversation that there is not, or whose agents are others, writes nothing', async () => {
  using place = workplace();
  await place.call(['send', 'plans', 'Hello']);
  const missing = await place.call(['eval', 'record', 'none', '--json']);
  expect(missing.json).toMatchObject({ error: { code: 'conversation_unknown' } });
  const other = place.write('other.json', company('Help.', true));
  const base = path.join(place.dir, 'plans');
  const refused = await place.call(['eval', 'record', 'plans', '--agents', other, '--out', base, '--json']);
  const message = 'the agents file has no agent "planner", who speaks in the conversation';
  expect(refused.json).toMatchObject({ error: { message } });
  expect(existsSync(`${base}.recording.json`)).toBe(false);
});
