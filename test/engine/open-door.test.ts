import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getPublicKey } from 'nostr-tools/pure';
import { expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { startRelay } from '../../packages/nostr/test/relay.ts';
import { person } from '../../packages/nostr/test/sign.ts';
import { problemOf } from '../../packages/nostr/test/verify-alone.ts';
import { scripted } from '../http/harness.ts';
import { openTroupe } from '../support/mode.ts';

const SECRET = '7'.repeat(64);
const PUBKEY = getPublicKey(Uint8Array.from(Buffer.from(SECRET, 'hex')));

test('a signed event wakes an agent, its answer is published signed, and a webhook gets both', async () => {
  await using relay = await startRelay();
  const heard: { type: string; event: { body: { content: string } } }[] = [];
  const receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      heard.push(JSON.parse(Buffer.concat(chunks).toString()));
      response.end();
    });
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const host = `127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  const ana = person();
  try {
    await using troupe = await openTroupe(
      {
        agents: [scripted('bo', [{ reply: 'Good morning, Ana.' }])],
        nostr: { relays: [relay.url], people: [ana.pubkey], keys: { bo: { env: 'BO_KEY' } } },
        webhooks: { allow: [host] },
      },
      { env: { BO_KEY: SECRET }, onWarning: () => {} },
    );
    await troupe.webhooks.create({ url: `http://${host}/hook`, on: ['message'] });

    const asked = ana.sign({ content: 'Good morning!', tags: [['p', PUBKEY]] });
    const socket = new WebSocket(relay.url);
    await once(socket, 'open');
    socket.send(JSON.stringify(['EVENT', asked]));

    const answers = async () =>
      (await relay.seen('EVENT'))
        .map(([, event]) => event as typeof asked)
        .filter(({ pubkey }) => pubkey === PUBKEY);
    await expect.poll(async () => (await answers()).length).toBe(1);
    socket.close();
    const [answer] = await answers();
    expect(problemOf(answer)).toBe(null);
    expect(answer).toMatchObject({ kind: 1, content: 'Good morning, Ana.' });
    expect(answer?.tags).toContainEqual(['p', ana.pubkey]);
    expect(
      answer?.tags.some(([name, id, , mark]) => name === 'e' && id === asked.id && mark === 'root'),
    ).toBe(true);

    await expect
      .poll(() => heard.map(({ event }) => event.body.content))
      .toEqual(['Good morning!', 'Good morning, Ana.']);
    expect((await troupe.events(`nostr:${asked.id}`)).events[0]).toMatchObject({ id: asked.id, to: ['bo'] });
  } finally {
    receiver.close();
  }
});
