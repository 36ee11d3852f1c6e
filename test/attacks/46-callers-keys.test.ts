import { expect } from 'vitest';
import { attack } from './attack.ts';
import { ACME, ANA, EVE, openStage, statusOf, withKey } from './stage.ts';

const CHAT = { model: 'bo', messages: [{ role: 'user', content: 'my salary?' }] };
const SAME = { 'idempotency-key': '1' };

attack(
  46,
  'the idempotency key of another caller gives neither their answer nor their conversation',
  async (refused) => {
    await using stage = await openStage({
      guarded: true,
      answer: ({ number }) => ({ text: `answer ${number}` }),
    });
    const ana = await withKey(stage, ACME, { author: ANA });
    const eve = await withKey(stage, ACME, { author: EVE });
    const scopes = { scopes: ['read', 'write'] as const };
    const app = await withKey(stage, ACME, { scopes: [...scopes.scopes] });
    for (const [path, body] of [
      ['/api/v1/chat/completions', CHAT],
      ['/api/v1/responses', { model: 'bo', input: 'my salary?' }],
    ] as const) {
      const ask = async (who: typeof ana) => {
        const { status, headers, text } = await who(path, { body, headers: SAME });
        expect(status).toBe(200);
        return { conversation: headers.get('x-troupe-conversation'), said: /answer \d+/.exec(text)?.[0] };
      };
      const first = await ask(ana);
      // The same caller repeats itself.
      expect(await ask(ana)).toEqual(first);
      for (const who of [eve, app]) {
        const other = await ask(who);
        expect(other.conversation).not.toBe(first.conversation);
        expect(other.said).not.toBe(first.said);
      }
    }
    refused('a conversation of its own');
  },
);

attack(46, 'the idempotency key of another caller over MCP', async (refused) => {
  await using stage = await openStage({
    guarded: true,
    answer: ({ number }) => ({ text: `answer ${number}` }),
  });
  const call = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'ask', arguments: { agent: 'bo', message: 'hi' } },
  };
  const said: (string | undefined)[] = [];
  for (const author of [ANA, EVE]) {
    const who = await withKey(stage, ACME, { author });
    for (const _ of [1, 2]) {
      const { text } = await who('/api/mcp', { body: call, headers: SAME });
      said.push(/answer \d+/.exec(text)?.[0]);
    }
  }
  const [anas, again, eves, evesAgain] = said;
  expect(anas).toBeDefined();
  expect(again).toBe(anas);
  expect(eves).not.toBe(anas);
  expect(evesAgain).toBe(eves);
  refused('a message of its own');
});

attack(46, 'a narrowed key begins the conversations that it was granted, and no other', async (refused) => {
  await using stage = await openStage({ guarded: true });
  const post = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '[{"role":"user","content":"hi"}]',
  };
  const long = `${'p'.repeat(100)}-`;
  for (const [conversations, mine, others] of [
    [['team-1'], ['team-1'], ['team-2', 'team-1-x', 'team-']],
    [['team-1', 'team-2'], ['team-2'], ['team-3']],
    [
      ['x', 'team-*'],
      ['team-9', 'x'],
      ['y', 'team'],
    ],
  ] as const) {
    const eve = await withKey(stage, `t${conversations.length}${conversations[0]}`, {
      conversations: [...conversations],
    });
    for (const conversation of mine) {
      const path = `/api/conversations/${conversation}/events`;
      expect(statusOf(await eve(`/api/import?conversation=${conversation}`, post))).toBe('201');
      expect(statusOf(await eve(path, { body: { author: EVE, content: 'hello' } }))).toBe('201');
    }
    for (const conversation of others) {
      expect(statusOf(await eve(`/api/import?conversation=${conversation}`, post))).toBe(
        '404 conversation_unknown',
      );
      refused('404 conversation_unknown');
    }
  }
  // Names that are cut to fit stay different.
  const eve = await withKey(stage, ACME, { conversations: [`${long}*`] });
  const begun = new Set<string | null>();
  for (const key of ['1', '2']) {
    const { headers } = await eve('/api/v1/chat/completions', {
      body: CHAT,
      headers: { 'idempotency-key': key },
    });
    begun.add(headers.get('x-troupe-conversation'));
  }
  expect([...begun].every((name) => name?.startsWith(long))).toBe(true);
  expect(begun.size).toBe(2);
});
