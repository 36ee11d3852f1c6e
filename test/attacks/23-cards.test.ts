import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { expect } from 'vitest';
import { attack } from './attack.ts';
import { openStage, withKey } from './stage.ts';

const HOSTS = [
  'evil.example',
  'evil.example:443',
  'localhost.evil.example',
  '127.0.0.1.evil.example',
  '10.0.0.1',
  'EVIL.example',
];

attack(23, 'no card is signed for a host that only the request names', async (refused) => {
  await using stage = await openStage({ guarded: true });
  const { headers } = await withKey(stage, 'default', { scopes: ['read', 'write'] });
  const ask = async (host: string, more: object = {}, body?: object) => {
    const path = body ? '/api/a2a/bo' : '/api/a2a/bo/.well-known/agent-card.json';
    const sent = request(`${stage.url}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { ...headers, host, 'a2a-version': '1.0', 'content-type': 'application/json', ...more },
    });
    sent.end(body && JSON.stringify(body));
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of answer) text += String(chunk);
    return { status: answer.statusCode, text };
  };
  const extended = { jsonrpc: '2.0', id: 1, method: 'GetExtendedAgentCard', params: {} };
  for (const host of HOSTS)
    for (const answer of [await ask(host), await ask(host, {}, extended)]) {
      expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('host_refused')]);
      expect(answer.text).not.toContain('signatures');
      refused('403 host_refused');
    }
  for (const name of ['x-forwarded-host', 'forwarded'])
    expect((await ask('127.0.0.1', { [name]: 'evil.example' })).text).not.toContain('evil');
  expect((await ask('127.0.0.1')).text).toContain('signatures');
});
