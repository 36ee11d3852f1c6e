import { expect, test } from 'vitest';
import type { AgentInput } from '../../../src/library/config/agent-input.ts';
import type { TroupeInput } from '../../../src/library/config/agents-file.ts';
import { type ConversationRun, person, playConversation } from '../src/index.ts';
import { type RecordedTest, recordTest } from '../src/record-test.ts';
import { Recording } from '../src/recording.ts';
import { startMcpModernServer } from '../../../test/support/mcp-modern-server.ts';
import { caller, stdioStage, type StdioStage } from '../../../test/tools/mcp-stage.ts';

const ana = person('ana');
const CALLS: Parameters<typeof caller>[2] = {
  sum: ['files__add', { a: 1, b: 2 }],
  other: ['files__add', { a: 2, b: 2 }],
  wrong: ['files__refuse'],
  read: ['files__files_read_all'],
  note: ['files__read_resource', { uri: 'note:a' }],
  large: ['files__big'],
};

function company(server: object, agent: Partial<AgentInput> = {}): TroupeInput {
  const desk = { ...caller('desk', ['files/*'], CALLS), instructions: 'Help.', ...agent } as AgentInput;
  return {
    agents: [desk],
    defaults: { respondWhenUnaddressed: 'desk' },
    mcpServers: { files: server },
  } as TroupeInput;
}

/** The same company, whose models cannot be reached, and whose server is gone. */
function offline(agent: Partial<AgentInput> = {}, server: object = {}): TroupeInput {
  const model = { provider: 'anthropic', model: 'claude-sonnet-5', script: undefined };
  const gone = { command: '/nowhere/server', env: ['NOT_SET'], ...server };
  return company(gone, { ...model, ...agent } as Partial<AgentInput>);
}

interface Played {
  stage: StdioStage;
  stored: ConversationRun;
  made: RecordedTest;
  recording: Recording;
}

/** Plays messages while the server runs, and makes a test of the conversation after the server is gone. */
async function played(
  words: readonly (string | ReturnType<typeof ana.says>)[],
  agent: Partial<AgentInput> = {},
  manner = '',
): Promise<Played> {
  const stage = stdioStage();
  const moves = words.map((word) => (typeof word === 'string' ? ana.says(word) : word));
  const options = { conversation: 'told', troupe: { env: { SECRET: 'hush' } } };
  const stored = await playConversation(company(stage.server(manner), agent), moves, options);
  const made = await recordTest(stored, offline(agent));
  return { stage, stored, made, recording: Recording.parse(JSON.parse(JSON.stringify(made.recording))) };
}

const resultsOf = ({ events }: ConversationRun) =>
  events.flatMap(({ kind, body }) => (kind === 'tool.result' ? [[body.outcome, body.content]] : []));
const offeredIn = ({ turns }: ConversationRun) => turns.map(({ prompts }) => prompts[0]?.tools);

test('tools of a server that is gone return what they returned, and models are offered the same', async () => {
  const { stage, stored, made, recording } = await played(['sum', 'wrong', 'read', 'large']);
  const begun = stage.trace();
  const again = await playConversation(offline(), made.moves, { recording });
  expect(resultsOf(again)).toEqual(resultsOf(stored));
  expect(resultsOf(again).slice(0, 3)).toEqual([
    ['done', '3'],
    ['failed', 'files__refuse failed: no, not with undefined'],
    ['done', 'files.read/all answers'],
  ]);
  expect(offeredIn(again)).toEqual(offeredIn(stored));
  expect(again.turns.map(({ events }) => events[0]?.context?.tools)).toEqual(
    stored.turns.map(({ events }) => events[0]?.context?.tools),
  );
  expect(stage.trace()).toEqual(begun);
});

test('a call of a server that was not recorded ends the run, and the nearest recorded call is named', async () => {
  const { made, recording } = await played(['sum']);
  const [first] = recording.answers;
  const calls = first?.calls?.map((call) => ({ ...call, args: '{"a":2,"b":2}' }));
  const answers = [{ ...first!, calls }, ...recording.answers.slice(1)];
  await expect(
    playConversation(offline(), made.moves, { recording: { ...recording, answers } }),
  ).rejects.toThrow(
    'not in the recording: files__add {"a":2,"b":2}; the nearest call in it is files__add {"a":1,"b":2}',
  );
});

const CHANGED = 'the tools of @desk have changed since the recording (told:desk:1)';

test.each([
  ['fewer tools', ['files/*'], { tools: ['files/add'] }, {}],
  ['a tool that was not recorded', ['files/add'], { tools: ['files/add', 'files/big'] }, {}],
  ['all tools in place of one', ['files/add'], { tools: ['files/*'] }, {}],
  ['all tools, of which the server may offer fewer', ['files/*'], {}, { tools: ['add', 'big'] }],
  ['resources', ['files/*'], { tools: ['files/*', 'files/@resources'] }, {}],
])('a change of grants is named: %s', async (_, tools, agent, server) => {
  const { made, recording } = await played(['sum'], { tools });
  await playConversation(offline({ tools }), made.moves, { recording });
  const changed = offline({ tools, ...agent }, server);
  await expect(playConversation(changed, made.moves, { recording })).rejects.toThrow(CHANGED);
});

test('a change of instructions is named, and grants that give the same tools are none', async () => {
  const { made, recording } = await played(['sum'], { tools: ['files/add'] });
  const told = offline({ tools: ['files/add'], instructions: 'Be brief.' });
  await expect(playConversation(told, made.moves, { recording })).rejects.toThrow(
    'the instructions of @desk have changed since the recording (told:desk:1)',
  );
  const same = offline({ tools: ['files/*'] }, { tools: ['add'] });
  expect((await playConversation(same, made.moves, { recording })).ended.kind).toBe('done');
});

test('resources are read as they were, and only by whom they are granted to', async () => {
  const { stored, made, recording } = await played(
    ['note'],
    { tools: ['files/*', 'files/@resources'] },
    'library',
  );
  const again = await playConversation(offline({ tools: ['files/@resources', 'files/*'] }), made.moves, {
    recording,
  });
  expect(resultsOf(again)).toEqual(resultsOf(stored));
  expect(offeredIn(again)).toEqual(offeredIn(stored));
  await expect(playConversation(offline({ tools: ['files/*'] }), made.moves, { recording })).rejects.toThrow(
    CHANGED,
  );
});

test('a call of a server waits for its approval as it did', async () => {
  const agent = { tools: ['files/add'], needsApproval: ['files/*'] };
  const stage = stdioStage();
  const people = [ana.says('sum'), ana.approves('files__add')];
  const stored = await playConversation(company(stage.server(), agent), people, { conversation: 'told' });
  const made = await recordTest(stored, offline(agent));
  expect(made.moves.map(({ move }) => move)).toEqual(['say', 'approve']);
  const again = await playConversation(offline(agent), made.moves, { recording: made.recording });
  expect(resultsOf(again)).toEqual(resultsOf(stored));
  await expect(playConversation(offline({ ...agent, needsApproval: [] }), made.moves, made)).rejects.toThrow(
    'the instructions of @desk have changed',
  );
});

test('a conversation in which a server asked a person is refused, and its tool is named', async () => {
  await using server = await startMcpModernServer();
  const script = {
    rules: [{ when: { step: 1 }, calls: [{ name: 'files__deploy', args: {} }] }, { reply: 'Done.' }],
  };
  const desk = company({ url: server.url }, { script } as Partial<AgentInput>);
  const stored = await playConversation(desk, [ana.says('Go.'), ana.answers('accept'), ana.answers('test')]);
  expect(stored).toHaveSaid('desk', 'Done.');
  await expect(recordTest(stored, desk)).rejects.toThrow(
    'cannot be played again as a test: the tool files__deploy asked a person during its call',
  );
});
