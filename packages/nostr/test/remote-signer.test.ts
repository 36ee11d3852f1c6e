import { inspect } from 'node:util';
import { getPublicKey, generateSecretKey } from 'nostr-tools/pure';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createAgentKeys } from '../src/agent-keys.ts';
import { signersFor } from '../src/agent-signers.ts';
import { createRemoteSigner } from '../src/remote-signer.ts';
import type { Signer } from '../src/signer.ts';
import { memoryKeyValue, type KeyValue } from '../../../src/base/key-value.ts';
import { type Bunker, startBunker } from './bunker.ts';
import { startRelay } from './relay.ts';
import type { TestRelay } from './relay-process.ts';
import { problemOf } from './verify-alone.ts';

const TEMPLATE = {
  kind: 1,
  created_at: 1_700_000_000,
  tags: [['p', 'a'.repeat(64)]],
  content: 'signed elsewhere',
};

function signerOf(bunker: Bunker, pubkey: string | null, timeoutMs = 5_000): Promise<Signer> {
  return createRemoteSigner({
    url: bunker.url,
    agent: 'ada',
    variable: 'ADA_BUNKER',
    pubkey,
    clientKey: generateSecretKey(),
    clock: systemClock,
    timeoutMs,
  });
}

function openSigners(
  bunker: Bunker,
  keyValue: KeyValue,
  env: Record<string, string> = {},
  pubkey: string | null = null,
) {
  const all = { ADA_BUNKER: bunker.url, TROUPE_NOSTR_PASSPHRASE: 'p', ...env };
  return signersFor({
    agents: [{ id: 'ada', pubkey }],
    sources: { ada: { bunkerEnv: 'ADA_BUNKER' } },
    keys: createAgentKeys({ keyValue, clock: systemClock, env: all, logN: 4 }),
    env: all,
    clock: systemClock,
  });
}

async function withBunker(work: (bunker: Bunker, relay: TestRelay) => Promise<void>): Promise<void> {
  await using relay = await startRelay();
  await using bunker = await startBunker(relay.url);
  await work(bunker, relay);
}

test('a remote signer signs exactly the requested event, and sees the same client in the next process', async () => {
  await withBunker(async (bunker) => {
    const keyValue = memoryKeyValue();
    for (const _ of [1, 2]) {
      const signers = await openSigners(bunker, keyValue);
      expect(signers.pubkeys.get('ada')).toBe(bunker.pubkey);
      const signed = await signers.of('ada')?.sign(TEMPLATE);
      expect(signed).toMatchObject({ ...TEMPLATE, pubkey: bunker.pubkey });
      expect(problemOf(signed)).toBeNull();
      await signers.close();
    }
    expect(bunker.asked).toEqual([
      'connect',
      'get_public_key',
      'sign_event',
      'connect',
      'get_public_key',
      'sign_event',
    ]);
    expect(bunker.clients.size).toBe(1);
    expect(await keyValue.get('nostr/keys')).toContain('ncryptsec');
    expect(await createAgentKeys({ keyValue, clock: systemClock, env: {} }).list()).toEqual([]);
  });
});

test('with a pubkey in the agents file the signer is not contacted before the first signature', async () => {
  await withBunker(async (bunker) => {
    bunker.behave('silent');
    const signer = await signerOf(bunker, bunker.pubkey, 300);
    expect(bunker.asked).toEqual([]);
    await expect(signer.sign(TEMPLATE)).rejects.toThrow(
      'the remote signer of @ada did not answer within 300 ms',
    );
    bunker.behave('garbage');
    await expect(signer.sign(TEMPLATE)).rejects.toThrow('did not answer');
    bunker.behave('sign');
    await expect.poll(() => signer.sign(TEMPLATE).then(problemOf, String)).toBeNull();
    await signer.close();
    await expect(signer.sign(TEMPLATE)).rejects.toThrow('closed');
  });
});

test('an event that a remote signer changed, or signed with another key, is refused', async () => {
  await withBunker(async (bunker) => {
    const signer = await signerOf(bunker, null);
    bunker.behave('forge');
    await expect(signer.sign(TEMPLATE)).rejects.toThrow('the remote signer of @ada changed the event');
    bunker.behave('other');
    await expect(signer.sign(TEMPLATE)).rejects.toThrow('signed with another key');
    bunker.behave('sign');
    expect(problemOf(await signer.sign(TEMPLATE))).toBeNull();
    await signer.close();
  });
});

test('the error for a refusing signer contains neither its message nor the secret of the URL', async () => {
  await withBunker(async (bunker) => {
    bunker.behave('refuse');
    const thrown: unknown = await openSigners(bunker, memoryKeyValue()).catch((error: unknown) => error);
    expect(thrown).toMatchObject({
      code: 'config_invalid',
      message: expect.stringMatching(/^the remote signer of @ada refused.*ADA_BUNKER/),
    });
    bunker.behave('sign');
    const other = getPublicKey(generateSecretKey());
    const signer = await signerOf(bunker, other);
    const wrong: unknown = await signer.sign(TEMPLATE).catch((error: unknown) => error);
    expect(wrong).toMatchObject({ message: expect.stringMatching('another key') });
    await signer.close();
    const strange = { url: bunker.url.replace('canary-bunker-secret', 'wrong-canary-secret') };
    const stranger: unknown = await signerOf({ ...bunker, ...strange }, null).catch(
      (error: unknown) => error,
    );
    expect(stranger).toMatchObject({ code: 'config_invalid' });
    expect(inspect([thrown, wrong, stranger, signer], { depth: 20, showHidden: true })).not.toMatch(/canary/);
  });
});
