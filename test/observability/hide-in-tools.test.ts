import { expect, test } from 'vitest';
import * as z from 'zod';
import { parseTroupe } from '../../src/library/config/agents-file.ts';
import { loadNostr } from '../../src/library/integrations/nostr.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { hideInTools, hideSecrets, secretValues } from '../../src/library/runtime/secrets.ts';
import { defineTool } from '../../src/tools/tool.ts';

/** Names that do not reveal that the value is secret: naming the variable decides. */
const ENV = {
  ADA_MODEL: 'canary-of-the-vendor',
  MEMORY: 'canary-of-the-embedder',
  TICKETS: 'Bearer canary-of-the-tool-server',
  ADA_NOSTR: `nsec1${'q'.repeat(58)}`,
  BO_BUNKER_URL: `bunker://${'a'.repeat(64)}?relay=wss://r.example&secret=canary%2Fof-the-bunker`,
  SIGNING_KEY: 'canary "quoted"\nin two lines',
  SHORT_TOKEN: 'canary-of-a-part',
  LONG_TOKEN: 'canary-of-a-part-and-more',
  PLACEHOLDER_KEY: 'not-needed',
  OPENAI_CUSTOM_HEADERS:
    'x-gateway: canary-of-the-gateway\nx-proxy: Bearer canary-of-the-proxy\nx-version: 2',
  PLAIN: 'harmless-and-long',
};
const SERVICES = ['mongodb://ana:canary%3Aof-mongodb@db/x', 'redis://:canary-of-redis-1@db'];

const COMPANY = parseTroupe({
  agents: [
    { id: 'ada', provider: 'openai-compatible', model: 'm', baseUrl: 'http://v/v1', apiKeyEnv: 'ADA_MODEL' },
    { id: 'bo', provider: 'scripted', model: 'm', script: { rules: [{ reply: 'x' }] } },
  ],
  context: {
    embedder: { provider: 'openai-compatible', baseUrl: 'http://v/v1', model: 'e', apiKeyEnv: 'MEMORY' },
  },
  mcpServers: { tickets: { url: 'https://t.example/mcp', headersEnv: { authorization: 'TICKETS' } } },
  nostr: {
    relays: ['wss://r.example'],
    keys: { ada: { env: 'ADA_NOSTR' }, bo: { bunkerEnv: 'BO_BUNKER_URL' } },
  },
});

const nostrPackage = await loadNostr();
/** The definition with the integrations that `createTroupe` makes of it. */
const SETTINGS = { ...COMPANY, integrations: [nostrPackage.nostr(COMPANY.nostr ?? {})] };

function answering(run: () => string) {
  const tool = defineTool({ name: 'look', description: 'l', schema: z.object({}), run });
  return hideInTools(SETTINGS, ENV, SERVICES)(tool).run({} as never, {} as never);
}

test.each<[what: string, printed: string, stored: string]>([
  ['the key of a vendor', ENV.ADA_MODEL, '[ADA_MODEL]'],
  ['the key of the embedder', ENV.MEMORY, '[MEMORY]'],
  ['a header of a tool server', ENV.TICKETS, '[TICKETS]'],
  ['that header without its scheme', 'wrong: canary-of-the-tool-server', 'wrong: [TICKETS]'],
  ["an agent's key on Nostr", ENV.ADA_NOSTR, '[ADA_NOSTR]'],
  ['the URL of a remote signer', ENV.BO_BUNKER_URL, '[BO_BUNKER_URL]'],
  ['the secret of that URL', 'it is canary/of-the-bunker', 'it is [BO_BUNKER_URL]'],
  ['the same as it is written', 'it is canary%2Fof-the-bunker', 'it is [BO_BUNKER_URL]'],
  ['what is called a key', ENV.SIGNING_KEY, '[SIGNING_KEY]'],
  ['the form as in JSON', JSON.stringify({ at: ENV.SIGNING_KEY }), '{"at":"[SIGNING_KEY]"}'],
  ['the longest first', `${ENV.LONG_TOKEN} ${ENV.SHORT_TOKEN}`, '[LONG_TOKEN] [SHORT_TOKEN]'],
  ['the password of MongoDB', SERVICES[0] ?? '', 'mongodb://[password]@db/x'],
  ['that password as it is meant', 'for canary:of-mongodb', 'for [password]'],
  ['the password of Redis', 'AUTH canary-of-redis-1', 'AUTH [password]'],
  ['a header of all requests', 'it was canary-of-the-gateway', 'it was [OPENAI_CUSTOM_HEADERS]'],
  ['another one without its scheme', 'canary-of-the-proxy', '[OPENAI_CUSTOM_HEADERS]'],
  ['no placeholder', ENV.PLACEHOLDER_KEY, 'not-needed'],
  ['no other variable', ENV.PLAIN, ENV.PLAIN],
])('what a tool prints or fails with is hidden: %s', async (_, printed, stored) => {
  expect(await answering(() => printed)).toEqual({ text: stored });
  const failing = answering(() => {
    throw new Error(printed);
  });
  await expect(failing).rejects.toThrow(new Error(stored));
});

test('secrets hidden from tools are hidden in log lines and recordings, too', () => {
  const hide = hideSecrets(secretValues(SETTINGS, ENV), SERVICES);
  for (const name of ['ADA_MODEL', 'MEMORY', 'TICKETS', 'ADA_NOSTR', 'BO_BUNKER_URL'] as const)
    expect(hide(`at ${ENV[name]}.`)).toBe('at [key].');
  expect(hide('wrong: canary-of-the-tool-server')).toBe('wrong: [key]');
  expect(hide('2 and canary-of-the-gateway of canary-of-the-proxy')).toBe('2 and [key] of [key]');
  expect(hide('secret canary/of-the-bunker of canary:of-mongodb')).toBe('secret [key] of [key]');
});

test('a troupe with Nostr stores no key that a tool prints', async () => {
  const key = '7'.repeat(64);
  const look = defineTool({
    name: 'look',
    description: 'l',
    schema: z.object({}),
    run: () => `ADA_NOSTR=${key}`,
  });
  await using troupe = await createTroupe(
    {
      agents: [
        {
          id: 'ada',
          provider: 'scripted',
          model: 'm',
          tools: ['look'],
          script: { rules: [{ when: { step: 1 }, calls: [{ name: 'look', args: {} }] }, { reply: 'seen' }] },
        },
      ],
      tools: [look],
      // No server listens there; the troupe starts all the same.
      nostr: { relays: ['ws://127.0.0.1:9'], keys: { ada: { env: 'ADA_NOSTR' } } },
    },
    { env: { ADA_NOSTR: key }, onWarning: () => {} },
  );
  await troupe.send('c', {
    author: { kind: 'user', id: 'ana', name: 'Ana' },
    to: ['ada'],
    content: 'look',
  });
  await troupe.idle();
  const { events } = await troupe.events('c');
  const results = events.filter(({ kind }) => kind === 'tool.result');
  expect(JSON.stringify(results)).toContain('ADA_NOSTR=[ADA_NOSTR]');
  expect(JSON.stringify(events)).not.toContain(key);
});
