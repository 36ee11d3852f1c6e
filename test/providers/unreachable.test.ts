import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAiSdk } from '../../src/providers/ai-sdk/ai-sdk.ts';
import { createAnthropic } from '../../src/providers/anthropic/anthropic.ts';
import { createOpenAiCompatible } from '../../src/providers/openai/openai-compatible.ts';
import { createOpenAi } from '../../src/providers/openai/openai.ts';
import { collectEvents } from '../../packages/testing/src/provider-conformance.ts';
import { chatModel } from './ai-sdk-stage.ts';

/** Listens and stops: the kernel accepts connections until the queue is full, and no more. */
const STOPPED = `
  const server = require('node:net').createServer();
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
    process.stdout.write(String(server.address().port) + '\\n', () => process.kill(process.pid, 'SIGSTOP'));
  });
`;
const LIMIT_MS = 5_000;
const TICK_MS = 100;

const listener = spawn(process.execPath, ['-e', STOPPED], { stdio: ['ignore', 'pipe', 'inherit'] });
const waiting: Socket[] = [];
let baseUrl = '';

beforeAll(async () => {
  const [line] = (await once(listener.stdout, 'data')) as [Buffer];
  const port = Number(line.toString());
  baseUrl = `http://127.0.0.1:${port}/v1`;
  // Loaded beforehand: the loading time of a test runner says nothing about the connection.
  await Promise.all([import('@anthropic-ai/sdk'), fillQueue(port)]);
});
afterAll(() => {
  for (const socket of waiting) socket.destroy();
  listener.kill('SIGKILL');
});

/** Connects until a connection is not accepted. */
async function fillQueue(port: number): Promise<void> {
  for (let i = 0; i < 32; i += 1) {
    const socket = createConnection({ port, host: '127.0.0.1' });
    socket.on('error', () => undefined);
    waiting.push(socket);
    const taken = await Promise.race([
      once(socket, 'connect').then(() => true),
      new Promise<false>((resolve) => setTimeout(resolve, 500, false)),
    ]);
    if (!taken) return;
  }
  throw new Error('the queue does not fill');
}

test.concurrent.each([
  ['anthropic', createAnthropic],
  ['openai', createOpenAi],
  ['openai-compatible', createOpenAiCompatible],
  ['a package of the AI SDK', ({ baseUrl: url }: { baseUrl: string }) => createAiSdk(chatModel(url))],
])('%s gives up a server that takes no connection within five seconds', async (_, create) => {
  const provider = create({ baseUrl, apiKey: 'k' });
  using clock = ownTime();
  const events = await collectEvents(provider);
  expect(events.at(-1)).toMatchObject({ type: 'failed', error: { code: 'provider_unreachable' } });
  expect(clock.now()).toBeLessThan(LIMIT_MS);
});

/**
 * Milliseconds as seen by this process, measured with one timer after another. The timeouts of Node's fetch are
 * counted in ticks as well, and come late on a busy machine.
 */
function ownTime(): Disposable & { now: () => number } {
  const began = performance.now();
  let ticks = 0;
  let timer = setTimeout(tick, TICK_MS);
  function tick(): void {
    ticks += 1;
    timer = setTimeout(tick, TICK_MS);
  }
  return {
    now: () => Math.min((ticks + 1) * TICK_MS, performance.now() - began),
    [Symbol.dispose]: () => clearTimeout(timer),
  };
}
