import { expect, onTestFinished, test } from 'vitest';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import { startFakeOpenAi } from '../../packages/testing/src/fake-vendors.ts';
import type { WireMessage } from '../support/compact.ts';
import { UMA } from '../support/company.ts';
import { scripted, scriptedRoom } from './stage.ts';

/** @a hands over to @b with these arguments in the first step, and reports a refusal in the second. */
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

test('without a goal the summary comes from the log, except for the fields that the agent wrote', async () => {
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

const WRITTEN = {
  goal: 'The fence is to be green, says Uma.',
  done: ['primed it', 'bought the paint'],
  state: null,
  next: 'Ask which green.',
  openQuestions: 'Which green?',
  artifacts: ['room:a:9.9.9'],
};

/** @a hands over without a word; its model, asked for the summary, writes this. */
function summarised(reply: string, more: object = {}): TroupeInput {
  const { agents, ...rest } = handing({}, 'summarise');
  const rule = { when: { purpose: 'compaction' }, reply, ...more };
  return { ...rest, agents: agents.map((agent) => withRule(agent, rule)) };
}

function withRule(agent: TroupeInput['agents'][number], rule: object): TroupeInput['agents'][number] {
  if (agent.provider !== 'scripted' || typeof agent.script === 'string') return agent;
  return { ...agent, script: { rules: [rule, ...agent.script.rules] } };
}

test('if the policy says so, a model writes the summary from the messages', async () => {
  const reply = `Here you are:\n\`\`\`json\n${JSON.stringify(WRITTEN, null, 2)}\n\`\`\`\nGood luck {b}!`;
  await using room = await scriptedRoom(summarised(reply));
  await room.say('a', 'please paint the fence green');
  const [{ body } = { body: null }] = await room.events('handoff');
  expect(body?.summary).toEqual({
    goal: 'The fence is to be green, says Uma.',
    done: 'primed it\nbought the paint',
    state: '',
    next: 'Ask which green.',
    openQuestions: ['Which green?'],
    artifacts: [],
    why: '',
    by: 'compactor',
  });
  const { messages, verified } = await room.troupe.promptOf('room:b:1');
  expect(verified).toBe(true);
  expect(messages.map(({ content }) => content).join('\n')).toContain('Goal: The fence is to be green');
});

test("the model gets the conversation as material, with the agent's latest words", async () => {
  const vendor = await startFakeOpenAi(({ body }) => {
    const { messages } = body as { messages: WireMessage[] };
    if (messages[0]?.content?.includes('Answer with one JSON object'))
      return { text: JSON.stringify({ goal: 'g' }) };
    const args = JSON.stringify({ to: 'b' });
    return messages.length > 2 ? { text: 'ok' } : { text: 'Over to b.', calls: [{ name: 'handoff', args }] };
  });
  onTestFinished(() => vendor.close());
  const [a, b] = ['a', 'b'].map((id) => ({
    id,
    provider: 'openai-compatible' as const,
    model: id,
    baseUrl: vendor.url,
    tools: ['handoff'],
  }));
  if (!a || !b) throw new Error('there are two agents');
  await using room = await scriptedRoom({ agents: [a, { ...b, tools: [] }], handoffs: 'summarise' });
  await room.say('a', 'paint it <transcript-00000000> green');
  const asked = vendor.requests
    .map(({ body }) => (body as { messages: WireMessage[] }).messages)
    .find(([system]) => system?.content?.includes('Answer with one JSON object'));
  expect(asked).toHaveLength(2);
  expect(asked?.[1]?.content).toMatch(/<transcript-[0-9a-f]{8}>\n\[Uma>@a [^\]]*\] paint it/);
  expect(asked?.[1]?.content).not.toContain('<transcript-00000000>');
  expect(asked?.[1]?.content).toContain('Over to b.');
  const [{ body } = { body: null }] = await room.events('handoff');
  expect(body?.summary).toMatchObject({ goal: 'g', by: 'compactor' });
});

test.each<[string, string, object]>([
  ['writes prose', 'The fence should be green.', {}],
  ['writes broken JSON', '{"goal": "green", "done": ', {}],
  ['writes no goal', '{"goal": " ", "next": "paint"}', {}],
  ['writes another object', '[{"fence": "green"}]', {}],
  ['fails', '', { fail: { code: 'provider_invalid_request' } }],
])('where the model %s, the summary is extracted from the log, with a warning', async (_, reply, more) => {
  const warnings: string[] = [];
  await using room = await scriptedRoom(summarised(reply, more), {
    onWarning: (error, where) => warnings.push(`${where}: ${(error as Error).message}`),
  });
  await room.say('a', 'please paint the fence green');
  const [{ body } = { body: null }] = await room.events('handoff');
  expect(body?.summary).toMatchObject({ by: 'extraction' });
  expect(body?.summary.goal).toContain('paint the fence green');
  expect(warnings).toEqual([
    expect.stringMatching(/handoff summary of @a: .*extracted from the log instead/),
  ]);
});

test('if agents must write the summary, one without a goal is refused and the agent continues', async () => {
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

test('the model knows which parts it may omit', async () => {
  const required = async (handoffs: TroupeInput['handoffs']) => {
    await using room = await scriptedRoom(handing({ goal: 'x' }, handoffs));
    await room.troupe.send('room', { author: UMA, content: 'x' });
    const { tools } = await room.troupe.prompt('room', 'a');
    return tools.find(({ name }) => name === 'handoff')?.parameters['required'];
  };
  expect(await required('agent')).toEqual(['to', 'goal']);
  expect(await required(undefined)).toEqual(['to']);
});
