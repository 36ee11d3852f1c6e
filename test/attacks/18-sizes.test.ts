import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect } from 'vitest';
import { cpuMsOf } from '../support/cpu-ms.ts';
import { attack } from './attack.ts';
import { ACME, ANA, type AttackStage, openStage, statusOf, unchanged, withKey } from './stage.ts';

const PATH = '/api/conversations/c/events';
const MESSAGE = { author: ANA, content: 'hello' };
/** Limit of the CPU time until another caller has its answer. A quiet process needs a hundredth. */
const PROMPT_MS = 1_000;

async function isPrompt(stage: AttackStage): Promise<void> {
  let status = 0;
  const cpuMs = await cpuMsOf(async () => ({ status } = await stage.ask('/api/conversations')));
  expect(status).toBe(200);
  expect(cpuMs).toBeLessThan(PROMPT_MS);
}

/** Sends chunks as long as they are accepted; resolves with the status. */
async function pour(
  stage: AttackStage,
  piece: Buffer,
  pieces: number,
): Promise<{ status: number; sent: number }> {
  const call = request(`${stage.url}${PATH}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
  });
  call.on('error', () => {});
  const answered = new Promise<number>((resolve) =>
    call.once('response', ({ statusCode = 0 }) => resolve(statusCode)),
  );
  let status = 0;
  void answered.then((code) => (status = code));
  let sent = 0;
  for (; sent < pieces && status === 0; sent++) {
    if (!call.write(piece)) await Promise.race([once(call, 'drain').catch(() => {}), answered]);
  }
  await answered;
  call.destroy();
  return { status, sent };
}

function rawSocket(url: string): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.on('error', () => {});
  return socket;
}

attack(
  18,
  'requests that are too large, too deep, too many or too slow do not affect other callers',
  async (refused) => {
    await using stage = await openStage();
    await stage.say('c', 'hello', { to: ['bo'] });

    // 16 MB and more: refused during the upload, or before it if the length was declared.
    await unchanged(stage, async () => {
      const { status, sent } = await pour(stage, Buffer.alloc(65_536, 32), 4_096);
      expect(status).toBe(413);
      expect(sent).toBeLessThan(4_096);
      const large = await stage.ask(PATH, { body: { ...MESSAGE, content: 'x'.repeat(1_100_000) } });
      expect(statusOf(large)).toBe('413 event_too_large');
    });
    refused('413 event_too_large');

    const nesting = fc.constantFrom(['[', ']'], ['{"a":', '}'], ['[{"content":', '}]'], ['{"\\"[":[', ']}']);
    await unchanged(stage, () =>
      fc.assert(
        fc.asyncProperty(
          nesting,
          fc.integer({ min: 65, max: 10_000 }),
          async ([open = '', end = ''], depth) => {
            const body = `${open.repeat(depth)}1${end.repeat(depth)}`;
            const cpuMs = await cpuMsOf(async () => {
              const answered = await stage.ask(PATH, { body });
              expect([statusOf(answered), answered.body.error?.data]).toEqual([
                '400 event_invalid',
                { path: '', limit: 64 },
              ]);
            });
            expect(cpuMs).toBeLessThan(PROMPT_MS);
          },
        ),
        { numRuns: 12 },
      ),
    );
    refused('400 event_invalid');

    await unchanged(stage, async () => {
      const bomb = gzipSync(Buffer.alloc(32 * 1_048_576, 32));
      for (const encoding of ['gzip', 'deflate', 'br', 'GZIP', 'gzip, gzip']) {
        const response = await fetch(`${stage.url}${PATH}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'content-encoding': encoding },
          body: bomb,
        });
        expect([encoding, response.status]).toEqual([encoding, 415]);
      }
      const many = Array.from({ length: 10_000 }, (_, n) => `agent-${n}`);
      expect(statusOf(await stage.ask(PATH, { body: { ...MESSAGE, to: many } }))).toBe('400 event_invalid');
      const attachments = Array.from({ length: 1_000 }, () => ({ mediaType: 'text/plain', data: '' }));
      expect(statusOf(await stage.ask(PATH, { body: { ...MESSAGE, attachments } }))).toBe(
        '400 event_invalid',
      );
      for (const limit of [0, -1, 5_001, 1e9, 'NaN'])
        expect(statusOf(await stage.ask(`${PATH}?limit=${limit}`))).toBe('400 event_invalid');
    });
    refused('415 content_type_refused');

    // A hundred clients that send a header and nothing else, and a hundred that send a body one byte at a time.
    const head = `POST ${PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n`;
    const slow = Array.from({ length: 200 }, (_, n) => {
      const socket = rawSocket(stage.url);
      socket.write(n % 2 === 0 ? head : `${head}content-length: 1000\r\n\r\n{`);
      return socket;
    });
    await unchanged(stage, () => isPrompt(stage));
    const gone = slow.map((socket) => once(socket, 'close'));
    for (const socket of slow) socket.destroy();
    await Promise.all(gone);
    await unchanged(stage, () => isPrompt(stage));
    // An upload that breaks off is not reported to operators as an error.
    expect(stage.errors).toEqual([]);
    refused('slow senders delay only themselves');
  },
);

attack(18, 'stream clients that stop reading block nothing, and miss nothing', async (refused) => {
  const READERS = 50;
  const EVENTS = 600;
  const TEXT = 'x'.repeat(10_000);
  await using stage = await openStage();
  const sockets = Array.from({ length: READERS }, () => rawSocket(stage.url));
  for (const socket of sockets) {
    socket.pause();
    socket.write(`GET /api/events?conversation=c HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`);
  }
  await isPrompt(stage);
  global.gc?.();
  const before = process.memoryUsage().rss;
  for (let sent = 0; sent < EVENTS; sent += 50) {
    const batch = Array.from({ length: 50 }, (_, n) =>
      stage.troupe.send('c', { author: ANA, content: `${sent + n} ${TEXT}` }),
    );
    await Promise.all(batch);
  }
  await isPrompt(stage);
  // Buffering everything for each reader would take 300 MB.
  expect((process.memoryUsage().rss - before) / 1_048_576).toBeLessThan(220);
  // One of them begins to read, and gets every event in order.
  const [reader] = sockets;
  if (!reader) throw new Error('unreachable');
  const seqs: number[] = [];
  let text = '';
  reader.on('data', (bytes: Buffer) => {
    text += bytes.toString();
    for (let at = text.indexOf('\n\n'); at >= 0; at = text.indexOf('\n\n')) {
      const id = /^id: (\d+)$/m.exec(text.slice(0, at))?.[1];
      if (id !== undefined) seqs.push(Number(id));
      text = text.slice(at + 2);
    }
  });
  reader.resume();
  await expect.poll(() => seqs.length).toBe(EVENTS);
  expect(seqs).toEqual(Array.from({ length: EVENTS }, (_, n) => n + 1));
  for (const socket of sockets) socket.destroy();
  refused('slow readers are served from the log');
});

attack(
  18,
  'large events for clients that do not read, or on one page, are not all held in memory',
  async (refused) => {
    const READERS = 20;
    const EVENTS = 40;
    const TEXT = 'x'.repeat(524_288);
    await using stage = await openStage();
    for (let sent = 0; sent < EVENTS; sent += 1)
      await stage.troupe.send('c', { author: ANA, content: `${sent} ${TEXT}` });
    global.gc?.();
    const before = process.memoryUsage().rss;
    const sockets = Array.from({ length: READERS }, () => rawSocket(stage.url));
    for (const socket of sockets) {
      // Its first bytes show that the stream is open; then it stops reading.
      const opened = once(socket, 'data').then(() => socket.pause());
      socket.write(`GET /api/events?conversation=c&after=0 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`);
      await opened;
    }
    await isPrompt(stage);
    // Buffering everything for each reader would take 400 MB.
    expect((process.memoryUsage().rss - before) / 1_048_576).toBeLessThan(200);

    const page = await stage.ask(`${PATH}?limit=5000`);
    expect([page.status, page.body['head']]).toEqual([200, EVENTS]);
    expect(page.text.length).toBeLessThan(5 * 1_048_576);
    for (const socket of sockets) socket.destroy();
    refused('a page ends at 4 MiB');
  },
);

attack(18, 'no caller exceeds its share of open streams and requests', async (refused) => {
  const traffic = { streams: 3, requestsPerSecond: 20, messagesPerSecond: 2 };
  await using stage = await openStage({ guarded: true, app: { traffic } });
  const [greedy, other] = [await withKey(stage, ACME), await withKey(stage, ACME)];
  const open = await Promise.all(
    Array.from({ length: traffic.streams }, () => fetch(`${stage.url}/api/events`, greedy)),
  );
  const over = await greedy('/api/events');
  expect([statusOf(over), Number(over.headers.get('retry-after'))]).toEqual([
    '429 rate_limited',
    expect.any(Number),
  ]);
  expect((await fetch(`${stage.url}/api/events`, other)).status).toBe(200);
  for (const response of open) await response.body?.cancel();
  await expect.poll(async () => (await fetch(`${stage.url}/api/events`, greedy)).status).toBe(200);

  const messages = await Promise.all(
    Array.from({ length: 30 }, () => greedy(PATH, { body: { ...MESSAGE, content: 'flood' } })),
  );
  const stored = messages.filter(({ status }) => status === 201).length;
  expect(new Set(messages.map(statusOf))).toEqual(new Set(['201', '429 rate_limited']));
  expect(stored).toBeLessThanOrEqual(5 * traffic.messagesPerSecond + 2);
  expect((await stage.troupe.forTenant(ACME).events('c')).head).toBe(stored);
  const asked = await Promise.all(Array.from({ length: 100 }, () => greedy('/api/conversations')));
  expect(new Set(asked.map(statusOf))).toEqual(new Set(['200', '429 rate_limited']));
  expect((await other('/api/conversations')).status).toBe(200);
  refused('429 rate_limited');
});
