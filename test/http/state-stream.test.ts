import { expect, test } from 'vitest';
import type { Tool } from '../../src/tools/tool.ts';
import { ANA, readStream, scripted, startApi, type StreamFrame } from './harness.ts';

const STATES = (frames: StreamFrame[]) => frames.filter(({ event }) => event === 'state');
const pathsOf = (frames: StreamFrame[]) =>
  STATES(frames).map(({ data }) => `${String(data['event'])} ${String(data['state'])}`);
const isAt = (state: string) => (frames: StreamFrame[]) => STATES(frames).at(-1)?.data['state'] === state;

/** A generator that ends on demand. */
function gate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const tool: Tool = {
    name: 'wait',
    description: 'Waits.',
    parameters: { type: 'object', properties: {} },
    check: (value) => Promise.resolve({ value }),
    idempotent: true,
    bounded: true,
    timeoutMs: 60_000,
    needsApproval: false,
    run: () => promise.then(() => 'it has come'),
  };
  return { tool, open: resolve };
}

const WORKER = scripted('worker', [
  { when: { contains: 'it has come' }, reply: 'done' },
  { reply: '', calls: [{ name: 'wait', args: {} }] },
]);

test('every transition of a machine is streamed with the called tools, in frames that cannot be resumed', async () => {
  const { tool, open } = gate();
  const company = { agents: [{ ...WORKER, tools: ['wait'] }], tools: [tool] };
  await using api = await startApi({ company });
  const response = await api.app.request('/api/events?conversation=c1');
  const reading = readStream(response, isAt('idle'));
  const acting = Promise.withResolvers<void>();
  api.troupe.watch((note) => {
    if (note.type === 'state' && note.state === 'working.acting') acting.resolve();
  });
  await api.troupe.send('c1', { author: ANA, to: ['worker'], content: 'go' });
  await acting.promise;
  const { body } = await api.get('/api/conversations/c1/actors');
  expect(body).toMatchObject({
    actors: [{ state: 'working.acting', can: ['abort', 'pause'], last: { event: 'MODEL_CALLED' } }],
  });
  open();
  const frames = await reading;
  expect(pathsOf(frames)).toEqual([
    'PINNED working.assembling',
    'PROMPT_READY working.streaming',
    'MODEL_CALLED working.acting',
    'CALLS_DONE working.assembling',
    'PROMPT_READY working.streaming',
    'MODEL_REPLIED working.supervising',
    'ACCEPTED working.committing',
    'COMMITTED idle',
  ]);
  for (const { id, data } of STATES(frames)) {
    expect(id).toBeNull();
    expect(data).toMatchObject({ conversation: 'c1', agent: 'worker', turn: 'c1:worker:1' });
    expect(data['at']).toBeGreaterThan(0);
    expect(data['doing']).toEqual(data['state'] === 'working.acting' ? ['wait'] : []);
  }
});

test('commands about an agent between turns are streamed, too, and a pause during a turn takes effect at its end', async () => {
  const { tool, open } = gate();
  const company = { agents: [{ ...WORKER, tools: ['wait'] }], tools: [tool] };
  await using api = await startApi({ company });
  const about = { conversation: 'c1', agent: 'worker' };
  const response = await api.app.request('/api/events?conversation=c1');
  const reading = readStream(response, (frames) => pathsOf(frames).at(-1)?.startsWith('REINSTATE') ?? false);
  const acting = Promise.withResolvers<void>();
  const rested = Promise.withResolvers<void>();
  api.troupe.watch((note) => {
    if (note.type !== 'state') return;
    if (note.state === 'working.acting') acting.resolve();
    if (note.event === 'COMMITTED') rested.resolve();
  });
  await api.troupe.send('c1', { author: ANA, to: ['worker'], content: 'go' });
  await acting.promise;
  await api.post('/api/commands', { command: 'pause', ...about });
  open();
  await rested.promise;
  for (const command of ['resume', 'retire', 'reinstate'])
    await api.post('/api/commands', { command, ...about });
  const told = pathsOf(await reading);
  expect(told.slice(told.indexOf('MODEL_CALLED working.acting') + 1)).toEqual([
    'PAUSE paused',
    'CALLS_DONE working.assembling',
    'PROMPT_READY working.streaming',
    'MODEL_REPLIED working.supervising',
    'ACCEPTED working.committing',
    'COMMITTED paused',
    'RESUME idle',
    'RETIRE retired',
    'REINSTATE idle',
  ]);
});

test('a watcher that throws stops no turn, and gets the next transition', async () => {
  const warnings: string[] = [];
  await using api = await startApi({ troupe: { onWarning: (_, where) => warnings.push(where) } });
  let told = 0;
  api.troupe.watch((note) => {
    if (note.type !== 'state') return;
    told += 1;
    throw new Error('thrown by a watcher');
  });
  await api.troupe.send('c1', { author: ANA, to: ['echo'], content: 'Hello' });
  await api.troupe.idle();
  const { events } = await api.troupe.events('c1');
  expect(events.at(-1)?.kind).toBe('turn.done');
  expect([told, warnings.length]).toEqual([5, 5]);
});

test('followers of one conversation get only its states, and followers of all get all', async () => {
  await using api = await startApi();
  const one = await api.app.request('/api/events?conversation=c1');
  const all = await api.app.request('/api/events');
  const isDone = (conversation: string) => (frames: StreamFrame[]) =>
    STATES(frames).some(({ data }) => data['conversation'] === conversation && data['event'] === 'COMMITTED');
  const reading = [readStream(one, isDone('c1')), readStream(all, isDone('c1'))];
  await api.troupe.send('c2', { author: ANA, to: ['echo'], content: 'Hello' });
  await api.troupe.idle();
  await api.troupe.send('c1', { author: ANA, to: ['echo'], content: 'Hello' });
  const [ofOne = [], ofAll = []] = await Promise.all(reading);
  expect(new Set(STATES(ofOne).map(({ data }) => data['conversation']))).toEqual(new Set(['c1']));
  expect(STATES(ofAll).map(({ data }) => data['conversation'])).toEqual([
    ...Array<string>(5).fill('c2'),
    ...Array<string>(5).fill('c1'),
  ]);
});
