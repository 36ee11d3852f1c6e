import fc from 'fast-check';
import { expect } from 'vitest';
import { untilHolds } from '../support/until-holds.ts';
import { attack } from './attack.ts';
import { ACME, ANA, type Answer, openStage, type Request, unchanged, withKey, ZETA } from './stage.ts';

const SECRET = 'a secret of acme';
/** All requests that name a conversation, a turn, a task or a key; `ID` is replaced by a guess. */
const GUESSES: readonly [path: string, request?: Request][] = [
  ['/api/conversations/ID'],
  ['/api/conversations/ID/events'],
  ['/api/conversations/ID/events?after=1'],
  ['/api/conversations/ID/actors'],
  ['/api/conversations/ID/snapshot'],
  ['/api/conversations/ID/snapshot?at=1'],
  ['/api/conversations/ID/rows'],
  ['/api/conversations/ID/tasks'],
  ['/api/conversations/ID/agents/bo/prompt'],
  ['/api/conversations/ID/agents/bo/cache-cost'],
  ['/api/conversations/ID/cost'],
  ['/api/conversations/ID/export'],
  ['/api/conversations/ID/export?format=html'],
  ['/api/turns/ID:bo:1'],
  ['/api/turns/ID:bo:1/prompt'],
  ['/api/turns/ID:bo:1/diff/next'],
  ['/api/conversations/ID?exported=none', { method: 'DELETE' }],
  ...[
    { command: 'abort', turn: 'ID:bo:1' },
    { command: 'retry', turn: 'ID:bo:1' },
    { command: 'pause', conversation: 'ID', agent: 'bo' },
    { command: 'resume', conversation: 'ID', agent: 'bo' },
    { command: 'mode', conversation: 'ID', mode: 'chat' },
    { command: 'answer', conversation: 'ID', question: 'q', content: 'x' },
    { command: 'decide', conversation: 'ID', request: 'r', approved: true },
    { command: 'cancelTask', conversation: 'ID', task: 't' },
    { command: 'archive', conversation: 'ID' },
    { command: 'fork', conversation: 'ID', seq: 1 },
    { command: 'fork', turn: 'ID:bo:1' },
  ].map((body): [string, Request] => ['/api/commands', { body }]),
];

/** Everything that an answer reveals, without the requested id. */
function shape({ status, headers, text }: Answer, id: string): unknown {
  const names = [...headers.keys()].filter((name) => name !== 'date' && name !== 'content-length');
  return [status, names.toSorted(), text.replaceAll(id, 'ID')];
}

function named([path, request = {}]: (typeof GUESSES)[number], id: string): [string, Request] {
  const body = request.body && (JSON.parse(JSON.stringify(request.body).replaceAll('ID', id)) as unknown);
  return [path.replaceAll('ID', id), body ? { ...request, body } : request];
}

attack(12, 'cross-tenant guesses get the same 404 as nonsense', async (refused) => {
  await using stage = await openStage({ guarded: true });
  const acme = stage.troupe.forTenant(ACME);
  const ids = ['plan', 'c1', 'a.b@c:d'];
  for (const id of ids) await acme.send(id, { author: ANA, content: SECRET, to: ['bo'] });
  await stage.troupe.idle();
  const ofAcme = await withKey(stage, ACME, { conversations: ['elsewhere', 'team-*'] });
  const strangers = [await withKey(stage, ZETA), await withKey(stage, 'default'), ofAcme];
  const statuses = new Set<number>();
  await unchanged(stage, () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...GUESSES),
        fc.constantFrom(...ids),
        fc.stringMatching(/^[a-z][a-z0-9]{2,30}$/),
        fc.nat(strangers.length - 1),
        async (guess, id, nonsense, who) => {
          const stranger = strangers[who] ?? ofAcme;
          const [one, other] = [
            await stranger(...named(guess, id)),
            await stranger(...named(guess, nonsense)),
          ];
          expect(shape(one, id)).toEqual(shape(other, nonsense));
          expect(one.text).not.toContain(SECRET);
          statuses.add(one.status);
        },
      ),
      { numRuns: 60 },
    ),
  );
  expect(statuses).toEqual(new Set([404]));
  refused('404, identical to that for nonsense');
  for (const stranger of strangers) {
    for (const path of ['/api/conversations', '/api/inbox', '/api/search?q=secret', '/api/budgets']) {
      expect((await stranger(path)).text).not.toMatch(/plan|secret of acme/);
    }
  }
  // Only server administrators manage the keys of other tenants.
  const [zeta = ofAcme] = strangers;
  for (const id of [ofAcme.id, 'aaaaaaaaaaaa']) {
    expect((await zeta(`/api/keys/${id}`, { method: 'DELETE' })).status).toBe(404);
    expect((await zeta(`/api/keys/${id}/rotate`, { body: {} })).status).toBe(404);
  }
  expect((await ofAcme('/api/conversations')).status).toBe(200);
  refused('no lists, no keys');
});

attack(12, 'a wrong, revoked, expired or missing credential gets the same 401', async (refused) => {
  await using stage = await openStage({ guarded: true });
  const keys = stage.troupe.forTenant(ACME).keys;
  const secretOf = async (more: object = {}) => keys.create({ name: 'k', scopes: ['read'], ...more });
  const expiresAt = Date.now() + 100;
  const [revoked, expired, good] = [await secretOf(), await secretOf({ expiresAt }), await secretOf()];
  await keys.revoke(revoked.key.id);
  await untilHolds(() => expect(Date.now()).toBeGreaterThan(expiresAt));
  const credentials = fc.oneof(
    fc.constantFrom(
      '',
      'Bearer',
      'Basic YTpi',
      `Bearer ${revoked.secret}`,
      `Bearer ${expired.secret}`,
      `Bearer ${good.secret}x`,
      `Bearer ${good.secret.slice(0, -1)}`,
      `Bearer ${good.secret.toUpperCase()}`,
      `Bearer trp_${good.key.id}_${'A'.repeat(43)}`,
      'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.',
    ),
    fc.stringMatching(/^Bearer [\w.-]{1,80}$/),
  );
  const bodies = new Set<string>();
  await unchanged(stage, () =>
    fc.assert(
      fc.asyncProperty(credentials, async (authorization) => {
        const answered = await stage.ask('/api/conversations', {
          headers: authorization ? { authorization } : {},
        });
        if (answered.status === 429) {
          refused('429 rate_limited');
          return;
        }
        expect(answered.status).toBe(401);
        bodies.add(answered.text);
      }),
      { numRuns: 30 },
    ),
  );
  expect(bodies.size).toBe(1);
  expect([...bodies][0]).toContain('token_required');
  refused('401 token_required');
});
