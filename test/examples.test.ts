import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createApp, serveHttp } from '../src/http/api/index.ts';
import { createTroupe, loadAgentsFile } from '../src/index.ts';
import { playClaim } from '../examples/claims/claims.ts';
import type { People } from '../examples/play/story.ts';
import { STORAGES } from './support/storages.ts';

const ROOT = path.dirname(import.meta.dirname);
const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;

async function play(name: string, people?: People): Promise<string[]> {
  const { playExample } = await import('../examples/play/play-example.ts');
  const lines: string[] = [];
  await playExample(name, people, (line) => lines.push(line));
  return lines;
}

const claims = (lines: readonly string[]) => lines.filter((line) => line.startsWith('✓'));

test('code review: three parallel reviews, one follow-up, one verdict', async () => {
  const lines = await play('code-review');
  expect(claims(lines)).toHaveLength(5);
  expect(lines.filter((line) => line.startsWith('@lead delegates to'))).toHaveLength(3);
  expect(lines.find((line) => line.startsWith('@lead: {'))).toContain('"verdict":"request_changes"');
});

test('research desk: a question, research, and an article approved by a person', async () => {
  const lines = await play('research-desk');
  expect(claims(lines)).toHaveLength(5);
  expect(claims(lines)).toContain('✓ the article is there');
});

test('research desk: a denied article is not published', async () => {
  const people: People = {
    answer: ({ choices }) => ({ by: ANA, content: choices?.[1] ?? '' }),
    decide: () => ({ by: ANA, approved: false, note: 'Too long.' }),
  };
  const lines = await play('research-desk', people);
  expect(claims(lines)).toContain('✓ there is no article');
  expect(lines).toContain('@editor: Then it is not published. What should be changed?');
});

test("support triage: routed, handed over, reminded, and ended by a person's answer", async () => {
  const lines = await play('support-triage');
  expect(claims(lines)).toHaveLength(6);
  expect(lines.at(-2)).toBe('@billing: Good news: the 90 euros are on their way back to you.');
});

test('an example that fails its claims ends with an error', async () => {
  // A person without permission to answer is refused, and a waiting question stays open.
  const people: People = {
    answer: () => ({ by: ANA, content: 'refund nothing' }),
    decide: () => ({ by: ANA, approved: true }),
  };
  await expect(play('support-triage', people)).rejects.toThrow('only dana may');
});

test('a program of @troupe/client prints who says what, and decides an approval', async () => {
  const definition = await loadAgentsFile(path.join(ROOT, 'examples/chat-window/agents.ts'));
  await using troupe = await createTroupe(definition);
  const server = await serveHttp(createApp(troupe), { port: 0 });
  const env = { ...process.env, TROUPE_URL: server.url };
  const file = path.join(ROOT, 'examples/client/ask.ts');
  async function ask(...flags: string[]): Promise<string[]> {
    const asked = promisify(execFile)(process.execPath, [file, ...flags], { env, timeout: 240_000 });
    return (await asked).stdout.trim().split('\n');
  }
  const [approved, refused] = await Promise.all([ask(), ask('Where is my money?', '--refuse')]);
  await server.close();
  const before = ['desk: I hand you over to billing.', 'billing: You were charged twice.'];
  const done = 'Billing: Done: the money is on its way back to you.';
  expect(approved).toEqual([...before, 'approved: refund {"euros":12}', done]);
  const denied = 'Billing: I am sorry: it was not approved.';
  expect(refused).toEqual([...before, 'refused: refund {"euros":12}', denied]);
});

describe.each(STORAGES)('an insurance office on %s', (_, missing, open) => {
  test.skipIf(missing !== null)(
    `sees the photo, waits for its people, is renamed, and forgets${missing === null ? '' : ` (skipped: ${missing})`}`,
    async () => {
      const storage = await open();
      onTestFinished(() => storage.close());
      const lines: string[] = [];
      await playClaim(storage.options, (line) => lines.push(line));
      expect(lines.filter((line) => line.startsWith('#'))).toHaveLength(5);
      expect(lines).toContain('@surveyor → @intake: done: Window 1,400, floor 4,800: 6200 euros.');
      const stored = (await storage.text()).toLowerCase();
      for (const word of ['lindqvist', 'tollgate', 'herringbone', 'thorvald', 'photo.png'])
        expect(stored).not.toContain(word);
    },
  );
});

test('an unknown example is refused with the list of examples', async () => {
  const file = path.join(ROOT, 'examples/play/play.ts');
  const failed = promisify(execFile)(process.execPath, [file, 'nothing'], { cwd: ROOT, timeout: 240_000 });
  await expect(failed).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('code-review | research-desk | support-triage') as string,
  });
});
