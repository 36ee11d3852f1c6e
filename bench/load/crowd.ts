import { Agent, get, type IncomingMessage, request } from 'node:http';
import { Readable } from 'node:stream';
import type { Bench } from '../figures.ts';
import { messageText, percentile } from '../support.ts';
import { postEvents } from './post-events.ts';
import { type LoadServer, startServer } from './server-process.ts';

const STREAMS = 10_000;
/** Stream limit of the server in these benches, per caller and in total. */
const STREAMS_LET_IN = 1_000;
/** Connections opened at a time. */
const AT_ONCE = 200;
/** The other tenant's load meanwhile. */
const PER_SECOND = 50;
const MIB = 1024 * 1024;

/**
 * A caller that opens ten thousand streams, and one that sends a million tiny events, next to a tenant who just
 * talks.
 */
export async function measureCrowd(bench: Bench, { events }: { events: number }): Promise<void> {
  const server = await startServer();
  try {
    const calm = await talk(server, 5);
    bench.heading(`${STREAMS} streams asked for by one caller, ${PER_SECOND} events/s of another tenant`);
    bench.add('append of the other before: p99', percentile(calm, 0.99), 'ms');
    await measureStreams(bench, server);
    bench.heading(`${events} tiny events in one import, ${PER_SECOND} events/s of another tenant`);
    await measureImport(bench, server, events);
  } finally {
    await server.stop();
  }
}

async function measureStreams(bench: Bench, server: LoadServer): Promise<void> {
  const before = await server.memory();
  const answers = new Map<number, number>();
  const open: IncomingMessage[] = [];
  const agent = new Agent({ maxSockets: Infinity });
  const crowd = (async () => {
    for (let from = 0; from < STREAMS; from += AT_ONCE) {
      const wave = await Promise.all(Array.from({ length: AT_ONCE }, () => ask(server, agent)));
      for (const response of wave) {
        answers.set(response.statusCode ?? 0, (answers.get(response.statusCode ?? 0) ?? 0) + 1);
        if (response.statusCode === 200) open.push(response);
        else response.resume();
      }
    }
  })();
  const [delays] = await Promise.all([talk(server, 15), crowd]);
  const during = await server.memory();
  bench.add('streams let in', answers.get(200) ?? 0, 'streams', { atMost: STREAMS_LET_IN });
  bench.add('streams refused with 429', answers.get(429) ?? 0, 'streams', {
    atLeast: STREAMS - STREAMS_LET_IN,
  });
  bench.add('append of the other: p99', percentile(delays, 0.99), 'ms', { atMost: 500 });
  bench.add('memory while they are open', (during.heapUsed - before.heapUsed) / MIB, 'MiB', { atMost: 200 });
  for (const response of open) response.destroy();
  agent.destroy();
}

/** Resolves with the head of the response: a stream has no end. */
function ask({ url, keys }: LoadServer, agent: Agent): Promise<IncomingMessage> {
  const headers = { authorization: `Bearer ${keys.load}` };
  return new Promise((resolve, reject) => {
    get(`${url}/api/events`, { agent, headers }, (response) => {
      response.on('error', () => {});
      resolve(response);
    }).on('error', reject);
  });
}

async function measureImport(bench: Bench, server: LoadServer, events: number): Promise<void> {
  const before = await server.memory();
  const began = performance.now();
  let seconds = 0;
  const imported = importLines(server, events).then((count) => {
    seconds = (performance.now() - began) / 1_000;
    return count;
  });
  const delays: number[] = [];
  do delays.push(...(await talk(server, 2)));
  while (seconds === 0);
  const after = await server.memory();
  bench.add('events imported', await imported, 'events', { atLeast: events });
  bench.add('events a second', events / seconds, 'events/s');
  bench.add('append of the other: p50', percentile(delays, 0.5), 'ms');
  bench.add('append of the other: p99', percentile(delays, 0.99), 'ms', { atMost: 1_000 });
  bench.add('growth of the heap', (after.heapUsed - before.heapUsed) / MIB, 'MiB', { atMost: 100 });
  bench.add('resident memory after', after.rss / MIB, 'MiB');
}

/** The number of events in the log afterwards. */
async function importLines({ url, keys }: LoadServer, events: number): Promise<number> {
  const headers = { authorization: `Bearer ${keys.load}`, 'content-type': 'application/x-ndjson' };
  const status = await new Promise<number>((resolve, reject) => {
    const path = `${url}/api/import?format=openai&conversation=tiny&file=tiny.jsonl`;
    const sent = request(path, { method: 'POST', headers }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
    });
    sent.on('error', reject);
    Readable.from(lines(events)).pipe(sent);
  });
  if (status !== 201) throw new Error(`the import was answered with ${status}`);
  const response = await fetch(`${url}/api/conversations/tiny/events?limit=1`, { headers });
  return ((await response.json()) as { head: number }).head;
}

/** A thousand events per request. */
function* lines(events: number): Generator<string> {
  const line = '{"role":"user","content":"."}\n';
  for (let left = events; left > 0; left -= 1_000) yield line.repeat(Math.min(left, 1_000));
}

/** A user of another tenant. Times each event from when it was due to its answer, ms. */
async function talk({ url, keys }: LoadServer, seconds: number): Promise<number[]> {
  const posted = await postEvents({
    url,
    key: keys.other,
    conversations: ['calm'],
    perSecond: PER_SECOND,
    seconds,
    content: messageText,
  });
  if (posted.refused.size > 0) throw new Error(`refused: ${[...posted.refused.keys()].join(' ')}`);
  return posted.delays;
}
