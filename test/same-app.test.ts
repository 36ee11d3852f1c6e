import { execFile } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { type FakeReply, type FakeRequest, startFakeOpenAi } from '../packages/testing/src/fake-vendors.ts';
import { sameApp } from '../scripts/same-app.ts';
import { tempDir } from './store/temp-dir.ts';

const ROOT = path.dirname(import.meta.dirname);
const { counted, program } = sameApp();
const execute = promisify(execFile);

/** Writes the program, as it is printed except for where it finds Troupe and its model. */
function written(model = "provider: 'openai'"): { dir: string; file: string } {
  const dir = tempDir();
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(dir, 'node_modules'));
  writeFileSync(path.join(dir, 'package.json'), '{ "type": "module" }');
  const file = path.join(dir, 'app.ts');
  const text = program
    .replace("'troupe'", `'${path.join(ROOT, 'src/index.ts')}'`)
    .replace("provider: 'openai'", model);
  writeFileSync(file, text);
  return { dir, file };
}

function reply({ body }: FakeRequest): FakeReply {
  const { messages } = body as { messages: { role: string; content: string | null }[] };
  const [system, ...rest] = messages;
  if (!system?.content?.includes('You refund orders'))
    return { text: '', calls: [{ name: 'handoff', args: '{"to":"billing","goal":"refund"}' }] };
  const last = rest.at(-1);
  if (last?.role === 'tool') return { text: `Done: ${last.content}.` };
  const order = /order (\d)/.exec(rest.findLast(({ role }) => role === 'user')?.content ?? '')?.[1];
  return { text: '', calls: [{ name: 'refund', args: JSON.stringify({ order }) }] };
}

test('the program has the number of lines that is printed, and at most 15', () => {
  const lines = program.split('\n').filter((line) => line.trim() !== '');
  expect(lines).toHaveLength(counted);
  expect(lines.length).toBeLessThanOrEqual(15);
});

test('the program answers both messages, the second by whom the conversation was handed to', async () => {
  await using vendor = await startFakeOpenAi(reply);
  const { dir, file } = written(`provider: 'openai-compatible', baseUrl: '${vendor.url}'`);
  const { stdout } = await execute(process.execPath, [file], {
    cwd: dir,
    env: { ...process.env, OPENAI_API_KEY: 'k' },
  });
  expect(stdout.trim().split('\n')).toEqual(['Done: refunded 7.', 'Done: refunded 8.']);
  const asked = vendor.requests.map(({ body }) =>
    JSON.stringify((body as { messages: unknown[] }).messages[0]),
  );
  expect(asked.filter((system) => system.includes('Hand over to who can help'))).toHaveLength(1);
});
