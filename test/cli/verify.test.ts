import { DatabaseSync } from 'node:sqlite';
import path from 'node:path';
import { expect, test } from 'vitest';
import { siteTest, TOKEN } from './distributed.ts';
import { type Workplace, workplace } from './harness.ts';

/** Changes the stored rows of a data directory, as another program might. */
function change(place: Workplace, statement: string): void {
  const database = new DatabaseSync(path.join(place.dir, '.troupe', 'troupe.db'));
  database.exec(statement);
  database.close();
}

function chat(place: Workplace, lines: number): string {
  const messages = Array.from({ length: lines }, (_, at) => ({ role: 'user', content: `line ${at}` }));
  return place.write('chat.jsonl', messages.map((message) => JSON.stringify(message)).join('\n'));
}

test('doctor --verify reads every conversation, of a directory and of the server that has it open', async () => {
  using place = workplace();
  // More than one part.
  await place.call(['import', chat(place, 10_050), '--conversation', 'long']);
  await place.call(['send', 'short', 'hello']);
  const { code, json } = await place.call(['doctor', '--verify', '--json']);
  expect(code).toBe(0);
  expect(json).toMatchObject({ ok: true, conversations: 2, unchained: 0, problems: [], interrupted: [] });
  expect(json['events']).toBeGreaterThan(10_052);
  await using dev = await place.dev();
  const served = await place.call(['doctor', '--verify', '--json', '--url', dev.url]);
  expect(served.json).toMatchObject({ ok: true, unchained: 0 });
  const { out } = await place.call(['doctor', '--verify', 'short']);
  expect(out).toMatch(/^ok +1 conversation, \d+ events: no damage found$/m);
});

test('doctor --verify names every changed, missing and moved event, and fails', async () => {
  using place = workplace();
  await place.call(['import', chat(place, 12), '--conversation', 'talk']);
  await place.call(['import', chat(place, 3), '--conversation', 'other']);
  const talk = `log = (SELECT num FROM logs WHERE conversation = 'talk')`;
  change(place, `UPDATE events SET data = replace(data, 'line 3', 'line 4') WHERE ${talk} AND seq = 4`);
  change(place, `DELETE FROM events WHERE ${talk} AND seq IN (7, 8)`);
  change(place, `UPDATE events SET at = at + 1 WHERE ${talk} AND seq = 11`);
  const { code, out } = await place.call(['doctor', '--verify']);
  expect(code).toBe(1);
  expect(out.split('\n').slice(0, -1)).toEqual([
    expect.stringMatching(/^failed +talk {2}event 4 \(.+\) is altered: its content does not match its hash$/),
    'failed   talk  events 7 to 8 are missing',
    expect.stringMatching(/^failed +talk {2}event 11 \(.+\) is unlinked: its chain value does not follow/),
    'failed   2 conversations, 13 events: 3 problems found',
  ]);
  const named = await place.call(['doctor', '--verify', 'other', '--json']);
  expect([named.code, named.json]).toMatchObject([0, { ok: true, conversations: 1, events: 3 }]);
});

test('doctor --verify says where a chain begins again, and does not fail for it', async () => {
  using place = workplace();
  await place.call(['import', chat(place, 6), '--conversation', 'talk']);
  change(place, `UPDATE events SET chain = NULL WHERE seq IN (3, 4)`);
  const { code, out } = await place.call(['doctor', '--verify']);
  expect(code).toBe(0);
  expect(out).toMatch(/^warning +talk {2}the chain begins again at event 5: /m);
  expect(out).toMatch(/^ok +1 conversation, 6 events: no damage found; 2 events without a chain value$/m);
});

test('doctor --verify refuses a name that no conversation has, and a missing directory', async () => {
  using place = workplace();
  const nowhere = await place.call(['doctor', '--verify', '--json']);
  expect([nowhere.code, nowhere.json]).toMatchObject([1, { error: { code: 'config_invalid' } }]);
  await place.call(['send', 'talk', 'hello']);
  const unknown = await place.call(['doctor', '--verify', 'tlak', '--json']);
  expect([unknown.code, unknown.json]).toMatchObject([
    1,
    { error: { code: 'conversation_unknown', data: { conversation: 'tlak' } } },
  ]);
});

siteTest('doctor --verify reads the database of MONGODB_URL', async ({ place, env, serve }) => {
  await using api = await serve();
  const file = chat(place, 5);
  const signedIn = { env: { ...env, TROUPE_TOKEN: TOKEN } };
  const imported = await place.run(['import', file, '--conversation', 'talk', '--url', api.url], signedIn);
  expect(imported.code).toBe(0);
  const { code, json } = await place.run(['doctor', '--verify', '--json'], { env });
  expect([code, json]).toMatchObject([0, { ok: true, conversations: 1, events: 5, unchained: 0 }]);
});
