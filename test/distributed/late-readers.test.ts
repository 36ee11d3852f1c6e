import { afterAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { createApp } from '../../src/http/api/index.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { ANA, readStream, type StreamFrame } from '../http/harness.ts';
import { dropDatabases, HAS_SERVICES, mongoUrl, redisUrl } from '../support/mode.ts';

const name = `late_${process.pid}_${Date.now().toString(36)}`;

if (!HAS_SERVICES) test.skip('skipped: no MongoDB, no Redis: late readers', () => undefined);

function pieces(frames: readonly StreamFrame[], step: number) {
  return frames.flatMap(({ event, data }) => (event === 'stream' && data['step'] === step ? [data] : []));
}

/** What was told of the call. While it is written, its arguments may come too: their notices wait to be joined. */
const kinds = (frames: readonly StreamFrame[]) =>
  frames.flatMap(({ event, data }) =>
    event === 'activity' && data['kind'] !== 'arguments' ? [data['kind']] : [],
  );

describe.runIf(HAS_SERVICES)('readers at another process', () => {
  afterAll(() => dropDatabases(new Set([name])));

  test('a reader that comes in the middle, and again after a lost connection, gets what was said so far', async () => {
    const opened = Promise.withResolvers<void>();
    const running = Promise.withResolvers<void>();
    const slow = defineTool({
      name: 'slow',
      description: '',
      schema: z.object({}),
      async run(_, { progress }) {
        progress({ text: 'half', done: 1, total: 2 });
        running.resolve();
        await opened.promise;
        return 'all of it';
      },
    });
    const definition = {
      agents: [
        {
          id: 'bo',
          provider: 'scripted' as const,
          tools: ['slow'],
          script: {
            rules: [
              { when: { step: 1 }, reply: 'Let me look.', chunk: 3, calls: [{ name: 'slow', args: {} }] },
              { reply: 'Here it is.', chunk: 2 },
            ],
          },
        },
      ],
      tools: [slow],
    };
    const services = { mongodb: mongoUrl(name), redis: redisUrl(), prefix: name };
    await using api = await createTroupe(definition, { ...services, work: false });
    await using _worker = await createTroupe(definition, services);
    const app = createApp(api);
    await api.send('c', { author: ANA, to: ['bo'], content: 'go' });
    await running.promise;
    // The second reader stands for the first one after its connection was lost.
    for (const [path, headers] of [
      ['/api/events?conversation=c', {}],
      ['/api/events?conversation=c', { 'last-event-id': '1' }],
    ] as const) {
      const frames = await readStream(await app.request(path, { headers }), (seen) =>
        kinds(seen).includes('progress'),
      );
      const text = pieces(frames, 1).map((data) => data['text']);
      expect([pieces(frames, 1)[0]?.['index'], text.join('')]).toEqual([0, 'Let me look.']);
      expect(kinds(frames)).toEqual(['called', 'progress']);
    }
    const last = readStream(await app.request('/api/events?conversation=c'), (seen) =>
      seen.some(({ data }) => data['kind'] === 'turn.done'),
    );
    opened.resolve();
    const frames = await last;
    const reply = frames.find(({ data }) => data['kind'] === 'message' && data['turn'] !== undefined);
    const words = pieces(frames, 2);
    expect(words.map((data) => data['text']).join('')).toBe('Here it is.');
    expect(reply?.data['body']).toMatchObject({ content: 'Here it is.' });
    let index = 0;
    for (const piece of words) {
      expect(piece['index']).toBe(index);
      index += String(piece['text']).length;
    }
  });
});
