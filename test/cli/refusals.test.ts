import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { nodeProblem } from '../../src/base/node-version.ts';
import { AGENTS, workplace } from './harness.ts';

test.each<[string, string[], string, RegExp]>([
  ['an unknown agent', ['send', 'c1', 'x', '--to', 'plannr'], 'agent_unknown', /Did you mean "planner"/],
  ['an id that is none', ['send', 'c1', 'x', '--id', 'a b'], 'event_invalid', /id/],
  ['a conversation that is no slug', ['send', '$where', 'x'], 'event_invalid', /conversation/],
  ['an unknown conversation', ['context', 'nope', 'planner'], 'conversation_unknown', /nope/],
  ['an unknown turn', ['trace', 'nope'], 'turn_unknown', /nope/],
  ['a file that is not there', ['import', 'nope.jsonl'], 'import_invalid', /no such file/],
  ['a directory for a file', ['import', '.'], 'import_invalid', /directory/],
  ['a file of an unknown format', ['import', 'agents.json'], 'import_invalid', /format/],
  ['a missing server', ['ls', '--url', 'http://127.0.0.1:9'], 'store_unavailable', /is it running/],
  ['an invalid URL', ['ls', '--url', 'nonsense'], 'config_invalid', /not a URL/],
  ['missing data', ['ls', '--data', 'elsewhere'], 'config_invalid', /elsewhere/],
  ['keys in missing data', ['nostr', 'keys', 'ls', '--data', 'elsewhere'], 'config_invalid', /elsewhere/],
])('%s is an error with code 1', async (_, args, code, message) => {
  using place = workplace();
  mkdirSync(path.join(place.dir, '.troupe'));
  const { code: exit, json } = await place.call([...args, '--json']);
  expect([exit, json]).toMatchObject([1, { error: { code, message: expect.stringMatching(message) } }]);
  expect(existsSync(path.join(place.dir, 'elsewhere'))).toBe(false);
});

test.each([
  [['fly']],
  [['send', 'c1']],
  [['ls', '--nope']],
  [['dev', '--port', 'x']],
  [['dev', '--port', '70000']],
  [['context', 'c', 'a', '--step', '0']],
  [['keys', 'create', 'x', '--author', 'bob']],
  [['keys', 'ls', '--tenant', 'a b']],
  [['webhooks', 'ls', '--tenant', 'a b']],
])('%j is a usage error with code 2', async (args) => {
  using place = workplace();
  expect(await place.call(args)).toMatchObject({
    code: 2,
    out: '',
    err: expect.stringMatching(/^usage: .*--help\n$/),
  });
  expect((await place.call([...args, '--json'])).json).toMatchObject({ error: { code: 'usage' } });
});

test('the help of every command fits on a screen', async () => {
  using place = workplace();
  const top = await place.call(['--help']);
  const names = [...top.out.matchAll(/^ {2}([a-z]+) .*$/gm)].map(([, name]) => name ?? '');
  const work = ['dev', 'serve', 'worker', 'send'];
  const tasks = ['tasks', 'answer', 'approve', 'cancel'];
  const looks = ['context', 'trace', 'ls', 'import', 'export', 'doctor'];
  const others = ['keys', 'webhooks', 'nostr'];
  const below = ['deny', 'keys create', 'keys rotate', 'webhooks create', 'nostr keys', 'nostr test'];
  expect(names).toEqual(expect.arrayContaining([...work, ...tasks, ...looks, ...others]));
  for (const name of ['deny', 'reopen', 'fork', 'rerun', 'compare', 'erase', 'cost', 'eval', 'schema', 'acp'])
    expect(top.out).toContain(`, ${name}`.slice(name === 'acp' ? 2 : 0));
  const helps = [top];
  for (const name of [...names, ...below]) helps.push(await place.call([...name.split(' '), '--help']));
  for (const { code, out } of helps) {
    expect(code).toBe(0);
    // The list of all commands is longer than the options of a single one.
    expect(out.trimEnd().split('\n').length).toBeLessThanOrEqual(out === top.out ? 35 : 24);
    expect(Math.max(...out.split('\n').map((line) => line.length))).toBeLessThanOrEqual(110);
  }
  expect((await place.call(['--version'])).out).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test('every problem of an agents file is listed with its path', async () => {
  using place = workplace({
    agents: {
      agents: [AGENTS.agents[0], { ...AGENTS.agents[0], tools: ['fly'] }, { id: 'a b', provider: 'nobody' }],
      defaults: { respondWhenUnaddressed: 'nobody' },
    },
  });
  const { code, json } = await place.call(['dev', '--json']);
  expect([code, json]).toMatchObject([1, { error: { code: 'config_invalid' } }]);
  const { problems } = (json['error'] as { data: { problems: string[] } }).data;
  expect(problems).toContainEqual(expect.stringContaining('agents[2].id: '));
  expect(problems).toContainEqual(expect.stringContaining('agents[2].provider: '));
  expect(existsSync(path.join(place.dir, '.troupe'))).toBe(false);
  expect(problems).toContain('agents[1].id: "planner" is used twice');
  expect(problems).toContainEqual(expect.stringContaining('agents[1].tools[0]: there is no tool "fly"'));
  expect(problems).toContainEqual(expect.stringContaining('defaults.respondWhenUnaddressed: there is no'));
});

test('missing and unknown fields of an agents file are named with their path', async () => {
  using place = workplace({
    agents: { agents: [{ id: 'a', provider: 'scripted' }], limits: { maxStep: 3 } },
  });
  const { json } = await place.call(['dev', '--json']);
  expect(json).toMatchObject({
    error: {
      data: {
        problems: [
          'agents[0].script: is missing',
          'limits.maxStep: is not a field; did you mean "maxSteps"?',
        ],
      },
    },
  });
});

test.each([
  ['half.json', '{"agents":', /half\.json:1: Unexpected end/],
  ['other.ts', 'export const company = 1;', /other\.ts: it exports neither "troupe" nor a default/],
  ['torn.ts', 'const a = 1;\nexport const troupe = {\n agents: [', /torn\.ts:3: /],
  ['absent.ts', null, /absent\.ts: there is no such file$/],
])('an agents file that cannot be loaded is reported with the problem: %s', async (name, text, why) => {
  using place = workplace({ agents: null });
  if (text !== null) place.write(name, text);
  const { code, err } = await place.run(['dev', name]);
  expect(code).toBe(1);
  expect(err.trim()).toMatch(/^config_invalid: cannot load /);
  expect(err.trim()).toMatch(why);
});

test('an older Node is refused with its version', () => {
  expect(nodeProblem('20.20.2')).toMatch(
    /^Troupe needs Node 22\.19 or newer, and this is Node 20\.20\.2: install /,
  );
  expect(nodeProblem('22.9.0')).toContain('Node 22.9.0');
  expect(['22.19.0', '23.0.0', '24.0.0'].map(nodeProblem)).toEqual([null, null, null]);
});

test('a step without a turn is refused', async () => {
  using place = workplace();
  await place.call(['send', 'c1', 'x', '--to', 'worker']);
  const { code, json } = await place.call(['context', 'c1', 'worker', '--step', '1', '--json']);
  expect([code, json]).toMatchObject([1, { error: { code: 'event_invalid', data: { path: 'turn' } } }]);
});

test('a wrong option points to the help of its command', async () => {
  using place = workplace();
  expect((await place.call(['send', 'c1', 'x', '--too', 'y'])).err).toContain('see troupe send --help');
  expect((await place.call(['sand'])).err).toContain('see troupe --help');
});

test('unusable data give a clear error', async () => {
  using place = workplace();
  const file = place.write('file', 'not a directory');
  const notDir = await place.call(['dev', '--data', file, '--json']);
  expect([notDir.code, notDir.json]).toMatchObject([1, { error: { code: 'data_unwritable' } }]);
  mkdirSync(path.join(place.dir, 'bad'));
  writeFileSync(
    path.join(place.dir, 'bad', 'troupe.db'),
    'this is no database, whatever its name says '.repeat(100),
  );
  const bad = await place.call(['ls', '--data', 'bad', '--json']);
  expect([bad.code, bad.json]).toMatchObject([1, { error: { code: 'store_corrupt' } }]);
  const doctor = await place.call(['doctor', '--data', 'bad', '--json']);
  expect(doctor.code).toBe(1);
  expect(doctor.out).toContain('not a database');
});

test('an impossible data directory gives a clear error', async () => {
  using place = workplace();
  // A path below a file is refused to every user, including root.
  writeFileSync(path.join(place.dir, 'file'), '');
  const { code, json } = await place.call(['dev', '--data', path.join(place.dir, 'file', 'data'), '--json']);
  expect([code, json]).toMatchObject([1, { error: { code: 'data_unwritable' } }]);
});

test('an empty text is not sent, because it would never be answered', async () => {
  using place = workplace();
  const { code, json } = await place.call(['send', 'c', '  ', '--to', 'planner', '--json']);
  expect([code, json]).toMatchObject([1, { error: { code: 'event_invalid', data: { path: 'content' } } }]);
});

test.each([
  ['absent.json', null],
  ['torn.json', '{"rules": ['],
])('a script that cannot be read is named: %s', async (name, text) => {
  using place = workplace({ agents: { agents: [{ id: 'a', provider: 'scripted', script: name }] } });
  if (text !== null) place.write(name, text);
  const { code, json } = await place.call(['dev', '--port', '0', '--json']);
  expect([code, json]).toMatchObject([1, { error: { code: 'config_invalid' } }]);
  expect(JSON.stringify(json)).toContain(name);
});
