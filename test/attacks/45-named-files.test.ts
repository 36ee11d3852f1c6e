import { expect } from 'vitest';
import { attack } from './attack.ts';
import { ACME, ANA, type AttackStage, openStage, statusOf, unchanged, withKey } from './stage.ts';

const SECRET = 'the plan of the vault';

/** A conversation that the attacker may not see, with a file; and an export that names the file by its hash. */
async function secretFile(stage: AttackStage): Promise<string> {
  const troupe = stage.troupe.forTenant(ACME);
  const data = Buffer.from(SECRET.repeat(4_000));
  await troupe.send('board-1', {
    author: ANA,
    content: 'see',
    attachments: [{ mediaType: 'text/plain', data }],
  });
  const { events } = await troupe.events('board-1', { after: 0, limit: 10 });
  const { tenant: _t, conversation: _c, seq: _s, tokens: _n, ...event } = events[0]!;
  return `${JSON.stringify({ troupe: 1, conversation: 'x' })}\n${JSON.stringify({ ...event, id: 'copied' })}\n`;
}

attack(45, 'a file that is named by its hash in an import', async (refused) => {
  await using stage = await openStage({ guarded: true });
  const file = await secretFile(stage);
  const owner = await withKey(stage, ACME);
  const post = { method: 'POST', headers: { 'content-type': 'application/x-ndjson' }, body: file };
  const narrowed = await withKey(stage, ACME, { conversations: ['team-*'] });
  const writing = await withKey(stage, ACME, { scopes: ['write', 'operate'] });
  for (const eve of [narrowed, writing]) {
    await unchanged(stage, async () => {
      const answer = await eve('/api/import?conversation=team-1', post);
      expect(statusOf(answer)).toBe('400 import_invalid');
      expect(answer.text).not.toContain(SECRET);
    });
    expect(statusOf(await narrowed('/api/conversations/team-1/attachment?seq=1&index=0'))).toMatch(/^404/);
    refused('import_invalid');
  }
  // Whoever may read all of the tenant may copy what it says, with its files.
  expect(statusOf(await owner('/api/import?conversation=team-2', post))).toBe('201');
  const copy = await owner('/api/conversations/team-2/attachment?seq=1&index=0');
  expect(copy.text).toContain(SECRET);
  // And whoever has the event in a conversation of theirs may import it there again.
  expect(statusOf(await narrowed('/api/import?conversation=team-2', post))).toBe('201');
});

attack(45, 'a file that a task of an import names by its hash', async (refused) => {
  await using stage = await openStage({ guarded: true });
  const [head, message] = (await secretFile(stage)).trim().split('\n') as [string, string];
  const { body, ...event } = JSON.parse(message) as { body: { attachments: unknown } };
  const task = {
    delegation: 'd-0efdee23ef64',
    how: 'delegate',
    delegator: 'a',
    assignee: 'b',
    task: 'read it to me',
    home: 'team-1',
    thread: 'team-1.d-0efdee23ef64',
    root: 'team-1',
    group: 'g',
    join: 'all',
    chain: ['a'],
    attachments: body.attachments,
  };
  const author = { kind: 'agent', id: 'a', name: 'a' };
  const line = JSON.stringify({ ...event, author, to: [], kind: 'delegation.opened', body: task });
  const narrowed = await withKey(stage, ACME, { conversations: ['team-*'] });
  const post = {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson' },
    body: `${head}\n${line}\n`,
  };
  const answer = await narrowed('/api/import?conversation=team-1', post);
  expect(statusOf(answer)).toBe('400 import_invalid');
  expect(answer.text).toContain('attachment');
  refused('import_invalid');
});

attack(45, 'a file of another tenant, by its hash', async (refused) => {
  await using stage = await openStage({ guarded: true });
  const file = await secretFile(stage);
  const zeta = await withKey(stage, 'zeta');
  const post = { method: 'POST', headers: { 'content-type': 'application/x-ndjson' }, body: file };
  expect(statusOf(await zeta('/api/import?conversation=z', post))).toBe('201');
  const answer = await zeta('/api/conversations/z/attachment?seq=1&index=0');
  expect(statusOf(answer)).toBe('400 event_invalid');
  expect(answer.text).not.toContain(SECRET);
  refused('event_invalid: the bytes are of another tenant');
});
