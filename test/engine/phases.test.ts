import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createApp } from '../../src/http/api/index.ts';
import { ROOM, UMA } from '../support/company.ts';
import { asks, bytes, inOrder, modelOf, says, shown, times } from '../support/engine-models.ts';
import { openStage } from '../support/engine-stage.ts';
import { ROOM_ID, scripted, scriptedRoom, type ScriptedRoom } from '../scenarios/stage.ts';

type Wish = { instructions?: string; summarise?: boolean };

function enter(room: ScriptedRoom, phase: string, more: Wish = {}) {
  return room.troupe.command({ command: 'phase', conversation: ROOM_ID, phase, ...more }, UMA);
}

const PLAN = { instructions: 'Only plan.\nWrite no code.' };

test('M1: the brief of a phase is given on entry and on change, not repeated within it, and never to a coordinator', async () => {
  await using room = await scriptedRoom({
    agents: [scripted('a'), scripted('boss', { role: 'manager' }), scripted('desk')],
    routing: { by: 'agent', agent: 'desk' },
  });
  const everyone = async (content: string) => {
    for (const agent of ['a', 'boss', 'desk']) await room.say(agent, content);
  };
  await everyone('one');
  await enter(room, 'plan', PLAN);
  for (let turn = 2; turn <= 26; turn++) await room.say('a', `turn ${turn}`);
  await everyone('next');
  await enter(room, 'build', { instructions: 'Now build.', summarise: false });
  await everyone('go');
  const told: string[] = [];
  for (let turn = 1; turn <= 28; turn++) {
    const lines = (await room.reminders('a', turn)).join('\n');
    if (lines.includes('phase:')) told.push(`${turn} ${lines.slice(lines.indexOf('phase:'))}`);
  }
  expect(told).toEqual(['2 phase: plan\nOnly plan.\nWrite no code.', '28 phase: build\nNow build.']);
  for (const agent of ['boss', 'desk']) {
    for (const turn of [1, 2, 3]) {
      const { messages } = await room.troupe.promptOf(`${ROOM}:${agent}:${turn}`);
      expect(messages.map(({ content }) => content).join('\n')).not.toMatch(/Only plan|Now build/);
    }
  }
});

test('a new epoch repeats the phase once', async () => {
  await using room = await scriptedRoom({ agents: [scripted('a', { instructions: 'In verse.' })] });
  await room.say('a', 'one');
  await enter(room, 'plan', PLAN);
  await room.say('a', 'two');
  await room.troupe.command({ command: 'mode', conversation: ROOM_ID, mode: 'chat' }, UMA);
  await room.say('a', 'three');
  await room.say('a', 'four');
  const turns = await Promise.all(
    [2, 3, 4].map(async (turn) => (await room.reminders('a', turn)).join('\n')),
  );
  expect(turns.map((lines) => lines.includes('phase: plan'))).toEqual([true, true, false]);
});

test('the outcome of a phase opens the next for all, once, and setting the same phase again changes nothing', async () => {
  await using room = await scriptedRoom({
    agents: [
      scripted('a', {}, [{ reply: 'We decided to use a queue. It is done in src/queue.ts.' }]),
      scripted('b'),
      scripted('boss', { role: 'manager' }),
      scripted('late'),
    ],
  });
  await room.say('b', 'hello');
  await room.say('boss', 'hello');
  const first = await enter(room, 'plan', PLAN);
  expect(first.body).toEqual({ phase: 'plan', instructions: PLAN.instructions });
  await room.say('a', 'choose how work is passed on');
  const second = await enter(room, 'build');
  expect(second).toMatchObject({
    kind: 'phase.changed',
    author: UMA,
    body: {
      phase: 'build',
      instructions: '',
      from: 'plan',
      summary: { goal: 'choose how work is passed on', by: 'extraction' },
    },
  });
  expect(await enter(room, 'build')).toEqual(second);
  expect(await room.events('phase.changed')).toHaveLength(2);
  for (const agent of ['b', 'boss']) {
    await room.say(agent, 'go');
    await room.say(agent, 'and again');
    const { messages } = await room.troupe.promptOf(`${ROOM}:${agent}:3`);
    const text = messages.map(({ content }) => content).join('\n');
    expect(times(text, 'began the phase build and ended plan')).toBe(1);
    expect(text).toMatch(
      /began the phase build[^\n]*\] Goal: choose how work is passed on\n Done: We decided/,
    );
  }
  await room.say('late', 'welcome');
  const { messages: history } = await room.troupe.promptOf(`${ROOM}:late:1`);
  const opening = history.filter(({ content }) => content.includes('began the phase build'));
  expect(opening).toHaveLength(1);
  expect(opening[0]?.content).toMatch(/began the phase build[^\n]* #\d{6}\]\nGoal: choose/);
  // Only these messages exist in it: an empty phase has nothing to summarise.
  await enter(room, 'rest', { summarise: false });
  const empty = await enter(room, 'ship');
  expect(empty.body).toEqual({ phase: 'ship', instructions: '', from: 'rest' });
});

test('private exchanges of two agents or people are in no summary', async () => {
  const stage = await openStage({
    agents: [
      {
        id: 'bo',
        model: inOrder(asks(['delegate', { to: 'cy', task: 'secret task' }]), says('it is arranged')),
        tools: ['delegate'],
      },
      { id: 'cy', model: inOrder(says('secret result')) },
    ],
  });
  await stage.say('c', 'please', ['bo']);
  await stage.quiet();
  const about = { command: 'phase', conversation: 'c' as never, summarise: true } as const;
  const event = await stage.troupe.command({ ...about, phase: 'build' }, UMA);
  expect(JSON.stringify(event.body)).toContain('it is arranged');
  expect(JSON.stringify(event.body)).not.toContain('secret');
});

test('two concurrent changes of the phase happen one after the other', async () => {
  await using room = await scriptedRoom({ agents: [scripted('a')] });
  await room.say('a', 'one');
  await enter(room, 'first');
  await Promise.all([enter(room, 'left'), enter(room, 'right'), enter(room, 'right')]);
  const chain = (await room.events('phase.changed')).map(({ body }) => [body.from, body.phase]);
  expect(chain[0]).toEqual([undefined, 'first']);
  for (const [index, [from]] of chain.entries()) if (index > 0) expect(from).toBe(chain[index - 1]?.[1]);
});

test('only a person changes the phase, and only of an existing conversation', async () => {
  await using room = await scriptedRoom({ agents: [scripted('a')] });
  await expect(enter(room, 'plan')).rejects.toMatchObject({ code: 'conversation_unknown' });
  await room.say('a', 'one');
  const agent = { kind: 'agent', id: 'a', name: 'a' } as const;
  const command = { command: 'phase', conversation: ROOM_ID, phase: 'plan' } as const;
  await expect(room.troupe.command(command, agent)).rejects.toMatchObject({ code: 'command_refused' });
});

test('the phase is changed and shown over HTTP', async () => {
  await using room = await scriptedRoom({ agents: [scripted('a')] });
  await room.say('a', 'one');
  const app = createApp(room.troupe, {});
  const body = JSON.stringify({ command: 'phase', conversation: ROOM, phase: 'plan', author: UMA });
  const headers = { 'content-type': 'application/json' };
  const changed = await app.request('/api/commands', { method: 'POST', body, headers });
  expect(changed.ok).toBe(true);
  expect(await (await app.request(`/api/conversations/${ROOM}`)).json()).toMatchObject({
    mode: 'agent',
    phase: 'plan',
  });
});

const change = fc.oneof(
  fc.constantFrom('chat', 'agent', 'run').map((mode) => ({ command: 'mode', mode }) as const),
  fc.record({
    command: fc.constant('phase' as const),
    phase: fc.constantFrom('plan', 'build'),
    instructions: fc.constantFrom('', 'be brief'),
  }),
  fc.constant({ command: 'say' } as const),
);

test('changes of mode and phase leave all sent bytes as they were', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 2, maxLength: 14 }), async (changes) => {
      let said = 0;
      const model = modelOf(async function* () {
        yield* says(`answer ${(said += 1)}`);
      });
      const stage = await openStage({ agents: [{ id: 'bo', model }] });
      await stage.say('c', 'begin', ['bo']);
      await stage.quiet();
      for (const [index, each] of changes.entries()) {
        const before = await stage.events('c');
        if (each.command !== 'say') await stage.troupe.command({ ...each, conversation: 'c' as never }, UMA);
        expect((await stage.events('c')).slice(0, before.length)).toEqual(before);
        await stage.say('c', `message ${index}`, ['bo']);
        await stage.quiet();
      }
      const sent = model.requests.map(({ messages }) =>
        messages.slice(1).map(({ role, content }) => `${role}\n${content}`),
      );
      for (const [index, messages] of sent.entries()) {
        if (index > 0) expect(messages.slice(0, sent[index - 1]?.length)).toEqual(sent[index - 1]);
      }
      expect(new Set(model.requests.map(bytes)).size).toBe(model.requests.length);
      expect(shown(model.requests.at(-1))).toContain('begin');
      expect(await stage.check('c')).toEqual([]);
      await stage.driver.close();
    }),
    { numRuns: 15 },
  );
});
