import { createServer, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import type { Workplace } from './harness.ts';
import { workplace } from './harness.ts';
import { readEvents, type StreamFrame } from './read-events.ts';

interface Line {
  type: string;
  summary?: string;
  event?: { seq: number; kind: string; conversation: string; author: { id: string } };
  agent?: string;
  state?: string;
}

/** `troupe watch --json`, line by line. */
async function watching(place: Workplace, args: string[]): Promise<AsyncDisposable & Watching> {
  const running = await place.start(['watch', ...args]);
  const lines = running.lines as Line[];
  return {
    err: running.err,
    async until(enough) {
      while (!enough(lines)) await running.nextLine();
      return lines;
    },
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  };
}

interface Watching {
  err: () => string;
  until(enough: (lines: Line[]) => boolean): Promise<Line[]>;
}

/** Sends a message and waits for the answer. */
async function say(url: string, conversation: string, to: string, content = 'x'): Promise<void> {
  const stream = await fetch(`${url}/api/events?conversation=${conversation}`);
  const isEnd = ({ event, data }: StreamFrame) =>
    event === 'event' && /^turn\.(?:done|failed)$/.test(String(data['kind'])) && Number(data['seq']) > seq;
  const response = await fetch(`${url}/api/conversations/${conversation}/events`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ author: { kind: 'user', id: 'u1', name: 'Ana' }, to: [to], content }),
  });
  const { seq } = ((await response.json()) as { event: { seq: number } }).event;
  await readEvents(stream, (frames) => frames.some(isEnd));
}

const ended = (lines: Line[]) => lines.some(({ event }) => event?.kind === 'turn.done');

test('watch prints events as they happen, with the states of the agents', async () => {
  using place = workplace();
  await using dev = await place.dev();
  await say(dev.url, 'c1', 'worker', 'stored before');
  await using watch = await watching(place, ['c1', '--url', dev.url]);
  await watch.until(ended);
  await say(dev.url, 'c1', 'worker', 'and now');
  const lines = await watch.until((all) => all.filter(({ event }) => event?.kind === 'turn.done').length > 1);
  const seqs = lines.flatMap(({ event }) => event?.seq ?? []);
  expect(seqs).toEqual(seqs.map((_, index) => index + 1));
  expect(lines.map(({ summary }) => summary)).toEqual(
    expect.arrayContaining([expect.stringContaining('stored before'), expect.stringContaining('and now')]),
  );
  expect(lines.filter(({ type }) => type === 'state').map(({ agent }) => agent)).toContain('worker');
});

test('watch prints only the requested kinds', async () => {
  using place = workplace();
  await using dev = await place.dev();
  await say(dev.url, 'c1', 'worker');
  await say(dev.url, 'c1', 'broken');
  const failed = (all: Line[]) => all.some(({ event }) => event?.kind === 'turn.failed');
  const printed = async (args: string[]) => {
    await using watch = await watching(place, ['c1', '--after', '0', '--url', dev.url, ...args]);
    return [...(await watch.until(failed))];
  };
  const kinds = (lines: Line[]) => new Set(lines.map(({ event }) => event?.kind));
  const ofAgent = await printed(['--agent', '@broken']);
  expect(kinds(ofAgent)).toContain('message');
  expect(ofAgent.some(({ event }) => event?.author.id === 'worker')).toBe(false);
  const ofKind = await printed(['--kind', 'turn.done,turn.failed']);
  expect(ofKind.every(({ type }) => type === 'event')).toBe(true);
  expect(kinds(ofKind)).toEqual(new Set(['turn.done', 'turn.failed']));
  const problems = await printed(['--problems']);
  expect(problems.every(({ event }) => event?.author.id === 'broken')).toBe(true);
});

test('without a name watch follows all conversations, from now on', async () => {
  using place = workplace();
  await using dev = await place.dev();
  let isPrinted = false;
  const started = watching(place, ['--url', dev.url, '--kind', 'message']).finally(() => (isPrinted = true));
  // The watch prints nothing before the first event, so events are sent until it does.
  for (let n = 0; !isPrinted; n++) await say(dev.url, `c${n}`, 'worker');
  await using watch = await started;
  await say(dev.url, 'other', 'worker');
  const lines = await watch.until((all) => all.some(({ event }) => event?.conversation === 'other'));
  expect(lines.every(({ event }) => event?.kind === 'message')).toBe(true);
});

/** A server that records where each connection resumes, and drops it after two events. */
async function dropping(): Promise<{ url: string; asked: string[]; server: Server } & AsyncDisposable> {
  const asked: string[] = [];
  function events(response: ServerResponse, after: number): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const seq of [after + 1, after + 2]) {
      const event = {
        seq,
        id: `m${seq}`,
        at: 1_000,
        conversation: 'c1',
        kind: 'message',
        author: { kind: 'user', id: 'u', name: 'Uma' },
        to: [],
        body: { content: `word ${seq}` },
        tokens: 1,
      };
      response.write(`event: event\nid: ${seq}\ndata: ${JSON.stringify(event)}\n\n`);
    }
    response.write('event: event\nid: 99\ndata: {"seq": 99, "half of', () => response.destroy());
  }
  const server = createServer(({ url = '' }, response) => {
    const { pathname, searchParams } = new URL(url, 'http://x');
    if (pathname !== '/api/events') return void response.end('{"events":[],"head":0}');
    asked.push(searchParams.get('after') ?? '');
    // It does not answer the second connection at all.
    if (asked.length === 2) return void response.destroy();
    events(response, Number(searchParams.get('after')));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    server,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

test('a broken connection is resumed at its position: nothing is lost or printed twice', async () => {
  using place = workplace();
  await using fake = await dropping();
  await using watch = await watching(place, ['c1', '--url', fake.url]);
  const lines = await watch.until((all) => all.length >= 6);
  expect(lines.slice(0, 6).map(({ event }) => event?.seq)).toEqual([1, 2, 3, 4, 5, 6]);
  expect(fake.asked.slice(0, 4)).toEqual(['0', '2', '2', '4']);
  expect(watch.err()).toMatch(/no troupe answers at .*Trying again\.\n/);
  expect(watch.err()).toContain('connected again');
});

test('for people an event is one line, and foreign text cannot control the terminal', async () => {
  using place = workplace();
  {
    await using dev = await place.dev();
    await place.call([
      'send',
      'c1',
      'red \u001b[31malert\nand more',
      '--to',
      'worker',
      '--wait',
      '--url',
      dev.url,
    ]);
  }
  const { code, out, err } = await place.call(['watch', 'c1']);
  expect(code).toBe(0);
  expect(out).toMatch(/^ {4}1 {2}\d\d:\d\d:\d\d {2}message {12}.*red ␛\[31malert and more$/m);
  expect(out).not.toContain('\u001b');
  expect(out.trim().split('\n').length).toBeGreaterThan(3);
  // No process has the data open any more.
  expect(err).toContain('nothing is running here to watch');
});

test('an unknown name is refused with a suggestion', async () => {
  using place = workplace();
  const wrong = await place.call(['watch', 'c1', '--kind', 'turn.fialed', '--json']);
  expect([wrong.code, wrong.json]).toMatchObject([
    1,
    { error: { code: 'event_invalid', message: expect.stringContaining('did you mean "turn.failed"?') } },
  ]);
  const away = await place.call(['watch', '--url', 'http://127.0.0.1:9', '--json']);
  expect([away.code, away.json]).toMatchObject([1, { error: { code: 'store_unavailable' } }]);
});
