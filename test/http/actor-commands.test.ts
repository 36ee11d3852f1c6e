import { expect, test } from 'vitest';
import type { ActorStatus } from '../../src/library/troupe.ts';
import { ANA, type Harness, scripted, startApi } from './harness.ts';

const BROKEN = scripted('broken', [{ fail: { code: 'provider_refused', message: 'not this' } }]);
const UNUSABLE = scripted('unusable', [{ fail: { code: 'provider_unusable', message: 'not ever' } }]);
const ASKS = scripted('asks', [{ reply: '', calls: [{ name: 'ask', args: { question: 'Which?' } }] }]);
const ECHO = scripted('echo', [{ reply: 'answer {{n}}' }]);
const COMPANY = { agents: [ECHO, BROKEN, UNUSABLE, { ...ASKS, tools: ['ask'] }] };

async function statusOf(api: Harness, agent: string): Promise<ActorStatus> {
  const found = (await api.troupe.actors('c1')).find((each) => each.agent === agent);
  if (!found) throw new Error(`there is no @${agent}`);
  return found;
}

async function say(api: Harness, agent: string): Promise<ActorStatus> {
  await api.troupe.send('c1', { author: ANA, to: [agent], content: 'Hello' });
  await api.troupe.idle();
  return statusOf(api, agent);
}

function order(api: Harness, command: string, agent: string, turn: string | null) {
  const about = command === 'retry' || command === 'abort' ? { turn } : { conversation: 'c1', agent };
  return api.post('/api/commands', { command, ...about });
}

test.each([
  ['echo', 'idle', ['pause', 'retire', 'compact']],
  ['asks', 'waiting.answer', ['pause', 'retire', 'compact']],
  ['broken', 'idle', ['retry', 'pause', 'retire', 'compact']],
  ['unusable', 'failed', ['retry', 'resume', 'retire']],
])('@%s at rest in %s can be given what is accepted then', async (agent, state, can) => {
  for (const command of can) {
    await using api = await startApi({ company: COMPANY });
    const status = await say(api, agent);
    expect(status).toMatchObject({ state, can });
    expect([command, (await order(api, command, agent, status.turn ?? status.lastTurn)).status]).toEqual([
      command,
      202,
    ]);
    await api.troupe.idle();
  }
});

test('a paused agent is resumed or retired, a retired one is reinstated, and nothing else is accepted', async () => {
  await using api = await startApi({ company: COMPANY });
  await say(api, 'broken');
  await order(api, 'pause', 'broken', null);
  expect(await statusOf(api, 'broken')).toMatchObject({
    can: ['resume', 'retire', 'compact'],
    last: { event: 'PAUSE' },
  });
  await order(api, 'retire', 'broken', null);
  const retired = await statusOf(api, 'broken');
  expect(retired).toMatchObject({ can: ['reinstate'], last: { event: 'RETIRE' } });
  expect(retired.legal).toEqual([{ event: 'REINSTATE', guard: null, target: 'available' }]);
  expect((await order(api, 'retry', 'broken', retired.lastTurn)).status).toBe(409);
  expect((await order(api, 'retire', 'broken', null)).status).toBe(409);
});

test('the accepted events of the machine are listed with their guards and targets', async () => {
  await using api = await startApi({ company: COMPANY });
  const { legal, last } = await say(api, 'echo');
  expect(legal.map(({ event, target }) => `${event} ${target}`)).toEqual([
    'PINNED working',
    'PAUSE paused',
    'BREAK failed',
    'RETIRE retired',
  ]);
  expect(last).toEqual({ event: 'COMMITTED', at: expect.any(Number) });
});
