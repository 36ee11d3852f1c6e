import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import * as rules from '../../src/context/render/rendering.ts';
import { eventOf } from '../../src/events/index.ts';
import { startFakeOpenAi } from '../../src/testing/index.ts';

/** A conversation begun by a version whose turns pinned rendering 2, opened by this one. */
let data = '';
beforeEach(() => {
  data = mkdtempSync(path.join(tmpdir(), 'troupe-upgrade-'));
});
afterEach(() => {
  vi.doUnmock('../../src/context/render/rendering.ts');
  vi.resetModules();
  rmSync(data, { recursive: true });
});

const UMA = { kind: 'user', id: 'u1', name: 'Uma' } as const;
const VIK = { kind: 'user', id: 'u2', name: 'Vik' } as const;

/** The library as it is loaded by a process whose turns pin this rendering. */
async function libraryOf(rendering: number) {
  vi.resetModules();
  vi.doMock('../../src/context/render/rendering.ts', async (load) => ({
    ...(await load<typeof rules>()),
    RENDERING: rendering,
  }));
  return import('../../src/index.ts');
}

interface Sent {
  messages: { role: string; content: string }[];
}

test('what it was sent stays as it was sent, its prompts are explained, and new messages have the new marks', async () => {
  await using server = await startFakeOpenAi(({ number }) => ({ text: `answer ${number}` }));
  const common = { provider: 'openai-compatible', model: 'm', baseUrl: server.url } as const;
  const company = {
    agents: [
      { id: 'bo', ...common },
      { id: 'cy', ...common },
    ],
  };
  const sent = () => server.requests.map(({ body }) => (body as Sent).messages);
  const old = await (await libraryOf(2)).createTroupe(company, { data });
  const say = async (troupe: typeof old, author: typeof UMA | typeof VIK, content: string, to: string[]) => {
    await troupe.send('c', { author, content, to });
    await troupe.idle();
  };
  await say(old, UMA, 'hello', ['bo']);
  await say(old, UMA, 'and you?', ['cy']);
  await say(old, VIK, 'go on', ['bo']);
  const before = sent().at(-1) ?? [];
  expect(before.map(({ content }) => content).join('\n')).toMatch(
    /<missed-[0-9a-f]{8}>\nWhile you were away:\n/,
  );
  await old.close();

  await using now = await (await libraryOf(rules.RENDERING)).createTroupe(company, { data });
  for (const turn of ['c:bo:1', 'c:cy:1', 'c:bo:2'])
    expect(await now.promptOf(turn)).toMatchObject({ turn, verified: true });
  await say(now, UMA, 'what did bo say?', ['cy']);
  await say(now, UMA, 'and you?', ['bo']);
  const after = sent().at(-1) ?? [];
  expect(after.slice(1, before.length)).toEqual(before.slice(1));
  const added = after.slice(before.length).map(({ content }) => content);
  expect(added.join('\n')).toMatch(/^\[new #\d{6}\]\n\[[^\]]+\] what did bo say\?\n[^]*\n#$/m);
  expect(added.join('\n')).not.toMatch(/<(?:missed|msg|reminder)-/);
  for (const turn of ['c:bo:2', 'c:bo:3', 'c:cy:2'])
    expect(await now.promptOf(turn)).toMatchObject({ turn, verified: true });
  const { events } = await now.events('c');
  const pinned = events.flatMap((event) => eventOf(event, 'turn.started')?.body.rendering ?? []);
  expect(pinned).toEqual([2, 2, 2, rules.RENDERING, rules.RENDERING]);
});
