import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { workplace } from './harness.ts';

const AGENT = { id: 'solo', provider: 'scripted', model: 'm' };

test("dev records the models' answers, and gives the same from the recording without the models", async () => {
  using place = workplace({
    agents: { agents: [{ ...AGENT, script: { rules: [{ reply: 'recorded {{n}}' }] } }] },
  });
  const recording = path.join(place.dir, 'calls.jsonl');
  const say = (url: string) => place.call(['send', 'c1', 'hello', '--to', 'solo', '--url', url, '--wait']);
  const first = await place.dev(['--data', ':memory:', '--record', recording]);
  expect((await say(first.url)).out).toContain('recorded 1');
  await first[Symbol.asyncDispose]();
  expect(readFileSync(recording, 'utf8').trim().split('\n')).toHaveLength(2);
  place.write('agents.json', { agents: [{ ...AGENT, script: { rules: [{ reply: 'another model' }] } }] });
  const second = await place.dev(['--data', ':memory:', '--replay', recording]);
  expect((await say(second.url)).out).toContain('recorded 1');
  await second[Symbol.asyncDispose]();
});

test('a missing recording is reported at the start, and nothing is created', async () => {
  using place = workplace();
  const failed = await place.call(['dev', '--port', '0', '--replay', 'none.jsonl']);
  expect([failed.code, failed.err]).toMatchObject([
    1,
    expect.stringMatching(/^config_invalid: the recording none\.jsonl cannot be used: ENOENT/),
  ]);
  expect(existsSync(path.join(place.dir, 'none.jsonl'))).toBe(false);
});
