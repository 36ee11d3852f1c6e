import { connect, createServer, type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { type ChatRequest, createFakeModel, plannedReply } from '../../rig/fake-model.ts';
import { startFakeTools } from '../../rig/fake-tools.ts';
import { startTcpProxy } from '../../rig/tcp-proxy.ts';
import { createWorkLog } from '../../rig/work-log.ts';
import { type FakeRequest, startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import { randomOf } from '../support/engine-random.ts';

const asked = (content: string, steps = 0): ChatRequest => ({
  model: 'model-of-bo',
  messages: [
    { role: 'system', content: 'You book seats.' },
    { role: 'user', content },
    ...Array.from({ length: steps }, () => ({ role: 'assistant', content: '', tool_calls: [{}] })),
  ],
});
const labels = Array.from({ length: 300 }, (_, i) => `k${i}-m0: please see to it`);

test('the model repeats its answer to a repeated request, in 20 chunks, and every turn ends', () => {
  const kinds = new Set<string>();
  for (const label of labels) {
    const reply = plannedReply(asked(label));
    expect(plannedReply(asked(label))).toEqual(reply);
    expect(Math.ceil((reply.text ?? '').length / 8)).toBe(20);
    kinds.add((reply.calls ?? []).map(({ name }) => name).join('+'));
    expect(plannedReply(asked(label, 3)).calls).toBeUndefined();
  }
  expect([...kinds].toSorted()).toEqual(['', 'book', 'book+look+book', 'handoff', 'look']);
});

test('an agent never hands over to itself', () => {
  const calls = labels.flatMap((label) => plannedReply(asked(label)).calls ?? []);
  const receivers = calls.filter(({ name }) => name === 'handoff').map(({ args }) => JSON.parse(args).to);
  expect(new Set(receivers)).toEqual(new Set(['ada', 'cy']));
});

test('one model request in twenty hangs, is refused or breaks off, and none after the end of the faults', async () => {
  let faults = true;
  const answer = createFakeModel(randomOf(7), createWorkLog(), () => faults);
  const request = (label: string): FakeRequest => ({
    number: 1,
    method: 'POST',
    path: '',
    headers: { authorization: 'Bearer p1' },
    body: asked(label),
    gone: Promise.resolve(),
  });
  const many = Array.from({ length: 2_000 }, (_, i) => answer(request(labels[i % labels.length] ?? '')));
  // Hanging requests are released when the faults end.
  await Promise.race([Promise.all(many), new Promise((resolve) => setImmediate(resolve))]);
  faults = false;
  const replies = await Promise.all(many);
  const broken = replies.filter(({ error, breaks }) => error ?? breaks);
  expect(broken.length).toBeGreaterThan(60);
  expect(broken.length).toBeLessThan(140);
  const calm = await Promise.all(labels.map((label) => answer(request(label))));
  expect(calm.filter(({ error, breaks }) => error ?? breaks)).toEqual([]);
});

test('a slow model answers with text alone, long enough for a kill during it', async () => {
  const answer = createFakeModel(
    randomOf(7),
    createWorkLog(),
    () => false,
    () => true,
  );
  for (const label of labels.slice(0, 50)) {
    const {
      text = '',
      chunk,
      delayMs,
      calls,
    } = await answer({
      number: 1,
      method: 'POST',
      path: '',
      headers: {},
      body: asked(label),
      gone: Promise.resolve(),
    });
    expect(calls).toBeUndefined();
    expect((text.length / (chunk ?? 1)) * (delayMs ?? 0)).toBeGreaterThanOrEqual(1_500);
  }
});

test('the work of a process is listed while it is under way', async () => {
  const work = createWorkLog();
  const calm = () => false;
  const model = await startFakeOpenAi(createFakeModel(randomOf(1), work, calm));
  const tools = await startFakeTools(randomOf(1), work, calm);
  onTestFinished(async () => void (await Promise.all([model.close(), tools.close()])));
  const body = JSON.stringify(asked('k3-m1: please'));
  const headers = { authorization: 'Bearer p9' };
  const answer = fetch(`${model.url}/chat/completions`, { method: 'POST', body, headers });
  await model.arrived();
  expect(work.of('p9')).toEqual([{ process: 'p9', conversation: 'k3', agent: 'bo' }]);
  await (await answer).text();
  await expect.poll(() => work.of('p9')).toEqual([]);

  const effect = 'k3:bo:1/0.0';
  const called = await fetch(`${tools.url}/book`, {
    method: 'POST',
    headers: { 'x-effect': effect, 'x-process': 'p9' },
  });
  expect(await called.text()).toBe(`book is done: ${effect}`);
  expect(tools.executions).toMatchObject([{ tool: 'book', effect, process: 'p9' }]);
  await expect.poll(() => work.all()).toEqual([]);
});

test('the proxy forwards bytes both ways, resets open connections, and accepts new ones', async () => {
  const server = createServer((socket) => socket.on('error', () => {}).pipe(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy = await startTcpProxy({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
  onTestFinished(async () => {
    await proxy.close();
    await new Promise((resolve) => server.close(resolve));
  });

  async function echo(): Promise<{ said: string; ended: Promise<string> }> {
    const socket = connect(proxy.port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    const ended = new Promise<string>((resolve) => {
      socket.on('error', (error) => resolve((error as NodeJS.ErrnoException).code ?? ''));
    });
    socket.write('hello');
    const said = await new Promise<string>((resolve) =>
      socket.once('data', (bytes) => resolve(String(bytes))),
    );
    return { said, ended };
  }

  const first = await echo();
  expect(first.said).toBe('hello');
  expect(proxy.resetAll()).toBe(1);
  expect(await first.ended).toBe('ECONNRESET');
  expect((await echo()).said).toBe('hello');
});
