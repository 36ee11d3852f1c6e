import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { createTroupe, loadAgentsFile } from '../src/index.ts';

const ROOT = path.dirname(import.meta.dirname);
const SCENES = [
  '1. Two people and two agents converse',
  '2. An agent joins in the middle, addressed by its public key',
  '3. Another returns, and learns what it missed',
  '4. One agent hands over to another, with a structured summary',
  '5. A model call breaks off half-way, and the turn is resumed',
  '6. A message arrives while an agent is busy',
];

/** Rejects if the demo does not end with code 0. */
async function demo(...flags: string[]): Promise<{ stdout: string; stderr: string }> {
  const file = path.join(ROOT, 'examples/demo/demo.ts');
  return promisify(execFile)(process.execPath, [file, ...flags], { cwd: ROOT, timeout: 240_000 });
}

/** Removes what differs between runs: fences depend on a secret of the store, and durations vary. */
function comparable(output: string): string {
  return output.replace(/(?<=<\/?\w+-)[0-9a-f]{8}(?=>)/g, 'fence').replace(/took +[\d.]+ s/, 'took');
}

test('the demo plays all six scenes, confirms its claims, and ends by itself', async () => {
  const { stdout, stderr } = await demo('--exit');
  expect(stderr).toBe('');
  expect(stdout.split('\n').filter((line) => /^\d\. /.test(line))).toEqual(SCENES);
  expect(stdout.match(/^ {2}✓ .+$/gm)).toHaveLength(12);
  expect(stdout).toContain('prompts verified   11 of 11');
  expect(stdout).not.toContain('\u001b');
});

test('two runs of the demo print the same, including token counts', async () => {
  const [first, second] = await Promise.all([demo('--exit'), demo('--exit')]);
  expect(comparable(first.stdout)).toBe(comparable(second.stdout));
});

test('with --json the demo prints one line per turn and nothing else', async () => {
  const { stdout } = await demo('--exit', '--json');
  const turns = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { scene: number; agent: string; prompts: { verified: boolean }[] });
  expect(turns.map(({ scene, agent }) => `${scene} ${agent}`)).toEqual([
    '1 planner',
    '1 coder',
    '2 reviewer',
    '3 coder',
    '3 planner',
    '4 planner',
    '4 coder',
    '5 reviewer',
    '6 coder',
    '6 coder',
  ]);
  expect(turns.flatMap(({ prompts }) => prompts).every(({ verified }) => verified)).toBe(true);
});

test('the company of the quick start answers', async () => {
  const definition = await loadAgentsFile(path.join(ROOT, 'examples/quickstart/agents.ts'));
  await using troupe = await createTroupe(definition);
  await troupe.send('hello', { author: { kind: 'user', id: 'ana', name: 'Ana' }, content: 'Hello' });
  await troupe.idle();
  const { events } = await troupe.events('hello');
  expect(events.filter(({ kind }) => kind === 'message').map(({ author }) => author.id)).toEqual([
    'ana',
    'planner',
  ]);
});
