import { setTimeout as pause } from 'node:timers/promises';
import type { Bench } from '../figures.ts';
import { messageText, percentile } from '../support.ts';
import { postEvents } from './post-events.ts';
import { startServer } from './server-process.ts';
import { openStream } from './stream-client.ts';

const READERS = 200;
const SLOW = 50;
const CONVERSATIONS = Array.from({ length: 10 }, (_, index) => `talk-${index}`);
const PER_SECOND = 300;
const MIB = 1024 * 1024;
const CATCH_UP_MS = 60_000;

/** 200 stream readers, 50 of them slow, while 300 events per second are written. */
export async function measureStreams(bench: Bench, { seconds }: { seconds: number }): Promise<void> {
  const server = await startServer();
  try {
    const { url, keys } = server;
    const key = keys.load;
    await postEvents({
      url,
      key,
      conversations: CONVERSATIONS,
      perSecond: 100,
      seconds: 1,
      content: messageText,
    });
    const readers = await Promise.all(
      Array.from({ length: READERS }, async (_, index) => {
        const conversation = CONVERSATIONS[index % CONVERSATIONS.length] ?? '';
        const isSlow = index < SLOW;
        return { conversation, isSlow, stream: await openStream({ url, key, conversation, isSlow }) };
      }),
    );
    const before = await server.memory();
    const posted = await postEvents({
      url,
      key,
      conversations: CONVERSATIONS,
      perSecond: PER_SECOND,
      seconds,
      content: messageText,
    });
    const after = await server.memory();
    const heads = new Map<string, number>();
    for (const conversation of CONVERSATIONS) {
      const response = await fetch(`${url}/api/conversations/${conversation}/events?limit=1`, {
        headers: { authorization: `Bearer ${key}` },
      });
      heads.set(conversation, ((await response.json()) as { head: number }).head);
    }
    const behind = () =>
      readers.filter(({ conversation, stream }) => stream.upTo() < (heads.get(conversation) ?? 0)).length;
    const slowBehind = behind();
    for (const { stream } of readers) stream.hurry();
    const deadline = performance.now() + CATCH_UP_MS;
    while (behind() > 0 && performance.now() < deadline) await pause(50);

    const stored = [...posted.stored.values()].reduce((sum, count) => sum + count, 0);
    const inLog = [...heads.values()].reduce((sum, head) => sum + head, 0);
    bench.heading(`${READERS} readers, ${SLOW} of them slow; ${PER_SECOND} events/s for ${seconds} s`);
    bench.add('events accepted', stored, 'events', { atLeast: PER_SECOND * seconds });
    bench.add('accepted events that are not in the log', stored + 100 - inLog, 'events', { atMost: 0 });
    bench.add('append, from when it was due to the answer: p50', percentile(posted.delays, 0.5), 'ms');
    bench.add('append: p99', percentile(posted.delays, 0.99), 'ms', { atMost: 50 });
    bench.add('readers that were behind when writing ended', slowBehind, 'readers');
    bench.add('readers that did not get every event in the end', behind(), 'readers', { atMost: 0 });
    const faults = readers.reduce((sum, { stream }) => sum + stream.faults(), 0);
    bench.add('events that came twice or out of order', faults, 'events', { atMost: 0 });
    bench.add('heap of the server before', before.heapUsed / MIB, 'MiB');
    bench.add('heap of the server after', after.heapUsed / MIB, 'MiB');
    bench.add(
      'growth of heap and buffers',
      (after.heapUsed + after.external - before.heapUsed - before.external) / MIB,
      'MiB',
      { atMost: 200 },
    );
    bench.add('resident memory after', after.rss / MIB, 'MiB');
    for (const { stream } of readers) stream.close();
  } finally {
    await server.stop();
  }
}
