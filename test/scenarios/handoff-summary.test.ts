import { expect, test } from 'vitest';
import type { TroupeInput } from '../../src/agents-file.ts';
import { UMA } from '../support/company.ts';
import { scripted, scriptedRoom } from './stage.ts';

/** @a hands over to @b with these arguments in the first step, and says so in the second if it is refused. */
function handing(args: object, handoffs?: TroupeInput['handoffs']): TroupeInput {
  const call = {
    when: { step: 1 },
    reply: 'Over to b.',
    calls: [{ name: 'handoff', args: { to: 'b', ...args } }],
  };
  return {
    agents: [scripted('a', { tools: ['handoff'] }, [call, { reply: 'I stay.' }]), scripted('b')],
    ...(handoffs && { handoffs }),
  };
}

test('a summary with a goal is the agent’s own, as it wrote it', async () => {
  await using room = await scriptedRoom(handing({ goal: 'paint it', next: 'choose a red' }));
  await room.say('a', 'please paint the fence green');
  const [{ body } = { body: null }] = await room.events('handoff');
  expect(body?.summary).toMatchObject({ goal: 'paint it', next: 'choose a red', done: '', by: 'agent' });
});

test('without a goal the summary is taken from the log, but for what the agent did write', async () => {
  await using room = await scriptedRoom(handing({ next: 'choose a red' }));
  await room.say('a', 'please paint the fence green');
  const [{ body } = { body: null }] = await room.events('handoff');
  expect(body?.summary).toMatchObject({ next: 'choose a red', by: 'extraction' });
  expect(body?.summary.goal).toContain('paint the fence green');
  expect(body?.summary.done).toContain('Over to b.');
  const { messages, verified } = await room.troupe.promptOf('room:b:1');
  expect(verified).toBe(true);
  expect(messages.map(({ content }) => content).join('\n')).toContain('Goal: please paint the fence green');
});

test('asked for by a model that is not there yet, the summary is taken from the log too', async () => {
  await using room = await scriptedRoom(handing({}, 'summarise'));
  await room.say('a', 'please paint the fence green');
  const [{ body } = { body: null }] = await room.events('handoff');
  expect(body?.summary).toMatchObject({ by: 'extraction' });
});

test('where agents must write the summary themselves, one without a goal is refused and the agent goes on', async () => {
  await using room = await scriptedRoom(handing({ next: 'choose a red' }, 'agent'));
  await room.say('a', 'please paint the fence green');
  expect(await room.events('handoff')).toEqual([]);
  const [result] = await room.events('tool.result');
  expect(result?.body).toMatchObject({
    outcome: 'failed',
    content: expect.stringContaining('goal') as string,
  });
  expect((await room.events('message')).at(-1)?.body.content).toBe('I stay.');
});

test('the model is told which parts it may leave out', async () => {
  const required = async (handoffs: TroupeInput['handoffs']) => {
    await using room = await scriptedRoom(handing({ goal: 'x' }, handoffs));
    await room.troupe.send('room', { author: UMA, content: 'x' });
    const { tools } = await room.troupe.prompt('room', 'a');
    return tools.find(({ name }) => name === 'handoff')?.parameters['required'];
  };
  expect(await required('agent')).toEqual(['to', 'goal']);
  expect(await required(undefined)).toEqual(['to']);
});
