import { type AgentCard, verifyAgentCardSignature } from '@a2a-js/sdk';
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createTroupe } from '../../../src/index.ts';
import { openStage, type Stage } from './stage.ts';

let stage: Stage;
let headers: Record<string, string>;

beforeAll(async () => {
  stage = await openStage(['bo', 'desk'], {
    isKeyed: true,
    agents: {
      desk: {
        name: 'Büro "€" 😀',
        description: 'Line\nand \u2028 mark',
        capabilities: ['b', 'a'],
        tools: ['handoff'],
      },
    },
  });
  const { secret } = await stage.troupe.keys.create({ name: 'r', scopes: ['read'] });
  headers = { authorization: `Bearer ${secret}` };
});
afterAll(async () => stage[Symbol.asyncDispose]());

async function cardOf(agent: string): Promise<Record<string, unknown>> {
  const address = `${stage.url}/api/a2a/${agent}/.well-known/agent-card.json`;
  return (await (await fetch(address, { headers })).json()) as Record<string, unknown>;
}

async function extendedCardOf(agent: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${stage.url}/api/a2a/${agent}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'GetExtendedAgentCard', params: {} }),
  });
  return ((await response.json()) as { result: Record<string, unknown> }).result;
}

/** Verifies the card as it was received, with the protocol's own SDK, which computes the canonical form itself. */
const verify = (card: object) => verifier(card as AgentCard);
const verifier = verifyAgentCardSignature(async (kid, jku) => {
  const { keys } = (await (await fetch(jku!, { headers })).json()) as { keys: { kid: string }[] };
  return keys.find((key) => key.kid === kid) as never;
});

test.each(['bo', 'desk'])('the card of %s is signed with the key that it names', async (agent) => {
  for (const card of [await cardOf(agent), await extendedCardOf(agent)]) await verify(card);
});

test.each([
  ['name', { name: 'Someone else' }],
  [
    'address',
    {
      supportedInterfaces: [
        { url: 'https://example.org/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      ],
    },
  ],
  ['security', { securityRequirements: [] }],
])('a card with another %s is no longer signed', async (_, change) => {
  const card = await cardOf('desk');
  // The SDK reports the reason there.
  vi.spyOn(console, 'debug').mockReturnValue();
  await expect(verify({ ...card, ...change })).rejects.toThrow('No valid signatures');
});

test('the keys are behind the guard of the cards, for any key of any tenant, and hold no secret', async () => {
  const { troupe, url } = stage;
  const { secret } = await troupe.forTenant('other').keys.create({ name: 'w', scopes: ['write'] });
  const ask = async (path: string, given: Record<string, string>) =>
    fetch(`${url}/api/a2a/${path}`, { headers: given });
  for (const path of ['.well-known/jwks.json', 'bo/.well-known/agent-card.json']) {
    expect((await ask(path, {})).status).toBe(401);
    expect((await ask(path, { authorization: 'Bearer wrong' })).status).toBe(401);
    expect((await ask(path, { authorization: `Bearer ${secret}` })).status).toBe(200);
  }
  const { keys } = (await (await ask('.well-known/jwks.json', headers)).json()) as { keys: object[] };
  expect(keys.map((key) => Object.keys(key).toSorted())).toEqual([
    ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'],
  ]);
  const written = await fetch(`${url}/api/a2a/.well-known/jwks.json`, { method: 'POST', headers });
  expect([written.status, written.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
});

test('the key is that of the data: the same after a restart, and another for other data', async () => {
  using folder = mkdtempDisposableSync(path.join(tmpdir(), 'troupe-'));
  const keyIn = async (data: string) => {
    await using troupe = await createTroupe(
      { agents: [] },
      { allowEmpty: true, data: path.join(folder.path, data), work: false },
    );
    return troupe.cardKey.publicKey;
  };
  const first = await keyIn('one');
  expect(await keyIn('one')).toEqual(first);
  expect((await keyIn('other')).kid).not.toBe(first.kid);
});
