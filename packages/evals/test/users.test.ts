import { existsSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import {
  describeConversation,
  minutesPass,
  type NewUser,
  person,
  playConversation,
  scriptedUser,
  type Seen,
  when,
} from '../src/index.ts';
import { playToItsEnd } from '../src/play-conversation.ts';
import { support } from './support-company.ts';

const [mia, dana, eve] = [person('mia'), person('dana'), person('eve', 'Eve B.')];
const COMPLAINT = mia.says('It costs more than you promised.');

test('five lines are a test of one agent', async () => {
  const helper = {
    id: 'helper',
    provider: 'scripted',
    script: { rules: [{ reply: 'Hello, {{last}}' }] },
  } as const;
  const run = await playConversation(
    { agents: [helper], defaults: { respondWhenUnaddressed: 'helper' } },
    'Ana here.',
  );
  expect(run).toHaveAnswered('helper', 'user', 'Hello, Ana here.');
});

test('agents alone are a company, whose first one answers', async () => {
  const rules = [{ reply: 'Here.' }];
  const agents = ['one', 'two'].map((id) => ({ id, provider: 'scripted', script: { rules } }) as const);
  const run = await playConversation(agents, 'Who is there?');
  expect(run).toHaveAnswered('one', 'user', 'Here.');
  expect(run).not.toHaveWoken('two');
});

test('a branch takes the steps that fit what was heard or asked', async () => {
  const ending = when(/takes longer/, [mia.says('I wait.')], [mia.says('Bye.')]);
  const waits = await playConversation(support, [COMPLAINT, when('Refund 90', [mia.says('Refund what?')])]);
  expect(waits).toHaveSaid('mia', 'Refund what?');
  const bye = await playConversation(support, ['A charge twice.', ending]);
  expect(bye).toHaveSaid('mia', 'Bye.');
  expect(bye).not.toHaveSaid('mia', 'I wait.');
});

test('a step may be any function of what was seen', async () => {
  const seen: Seen[] = [];
  function look(now: Seen): undefined {
    seen.push(now);
  }
  await playConversation(support, [look, COMPLAINT, look, minutesPass(5), dana.answers('refund it'), look]);
  const [first, second, third] = seen;
  expect(first).toMatchObject({ events: [], said: '', waits: [], minutes: 0 });
  expect(second?.waits.map(({ task }) => task.text)).toEqual(['Refund 90 euros?']);
  expect(third).toMatchObject({ minutes: 5, waits: [{ task: { kind: 'approval', tool: 'refund' } }] });
  expect(third?.news.length).toBeLessThan(third?.events.length ?? 0);
});

test('several users take part, and one that waits is asked again when another has moved', async () => {
  const decider: NewUser = () => ({
    name: 'dana',
    next: ({ waits }) => {
      const wait = waits[0]?.task;
      if (!wait) return { move: 'wait' };
      return wait.kind === 'question'
        ? dana.answers('refund it')
        : dana.denies('refund', { note: 'Too much.' });
    },
  });
  const customer = scriptedUser([COMPLAINT, mia.says('Thank you.', { to: ['desk'] })], 'mia');
  const run = await playConversation(support, { users: [decider, customer] });
  expect(run).toHaveSaid('billing', 'no refund');
  expect(run).toHaveSaid('dana', 'Too much.');
  expect(run).toHaveSaid('desk', 'You are welcome.');
});

test('a user is made anew for each run, and is told its number', async () => {
  const counting: NewUser = ({ seed }) => scriptedUser([mia.says(`This is run ${seed}.`)])({ seed });
  const runs = await Promise.all(
    [1, 2].map((seed) => playConversation(support, { users: [counting] }, { seed })),
  );
  expect(runs[0]).toHaveSaid('mia', 'run 1');
  expect(runs[1]).toHaveSaid('mia', 'run 2');
});

test('time that passes ends deadlines one after the other', async () => {
  const company = { ...support, limits: { questionMs: 600_000 } };
  const run = await playConversation(company, [COMPLAINT, minutesPass(11)]);
  expect(
    run.events.some(({ kind, body }) => kind === 'question.answered' && body.outcome === 'expired'),
  ).toBe(true);
});

test.each([
  [
    'an answer that nobody asked for',
    [dana.answers('yes')],
    'move 1 of the script: Dana answers "yes", but nobody asks for that; nothing is asked of anybody',
  ],
  [
    'an answer of somebody who is not asked',
    [COMPLAINT, mia.answers('yes')],
    'billing asks dana "Refund 90 euros?"',
  ],
  ['another question', [COMPLAINT, dana.answers('yes', { question: 'Which?' })], 'but nobody asks for that'],
  [
    'a decision on another tool',
    [COMPLAINT, dana.answers('refund it'), dana.approves('pay')],
    'billing asks dana to approve refund',
  ],
  ['an answer that is no choice', [COMPLAINT, dana.answers('perhaps')], 'which is refused: '],
  [
    'words to somebody unknown',
    [eve.says('Hello', { to: ['nobody'] })],
    'Eve B. says "Hello", which is refused: ',
  ],
])('a move that is not possible ends the run, in words: %s', async (_, steps, why) => {
  await expect(playConversation(support, steps)).rejects.toThrow(why);
});

test('what was played before an impossible move is there', async () => {
  const { ended, events } = await playToItsEnd(support, [COMPLAINT, dana.approves()]);
  expect(ended.kind).toBe('impossible');
  expect(events.length).toBeGreaterThan(5);
});

test('a conversation without end is stopped', async () => {
  const endless: NewUser = () => ({ name: 'an endless user', next: () => mia.says('Again.') });
  const run = playConversation(support, { users: [endless] }, { mostMoves: 3 });
  await expect(run).rejects.toThrow('an endless user has made 3 moves: it does not end');
});

test('models and tools are replaced for a test, by name', async () => {
  const run = await playConversation(support, [COMPLAINT], {
    models: {
      clerk: {
        rules: [
          { when: { step: 1 }, calls: [{ name: 'look_up', args: { invoice: '1' } }] },
          { reply: 'None.' },
        ],
      },
    },
    tools: { look_up: ({ invoice }) => `no invoice ${String(invoice)}` },
  });
  expect(run).toHaveCalled('clerk', 'look_up', { invoice: '1' }, { result: 'no invoice 1' });
  await expect(playConversation(support, 'Hello', { models: { clark: { rules: [] } } })).rejects.toThrow(
    'the company has no agent "clark"; did you mean "clerk"?',
  );
  await expect(playConversation(support, 'Hello', { tools: { lookup: '' } })).rejects.toThrow(
    'the company has no tool "lookup"; did you mean "look_up"?',
  );
});

test('an agent whose model is replaced keeps what it sees and its former ids', async () => {
  const agents = support.agents.map((agent) =>
    agent.id === 'desk' ? { ...agent, aliases: ['counter'], sees: 'results' as const } : agent,
  );
  const models = { desk: { rules: [{ reply: 'Good day.' }] } };
  const said = mia.says('Hello.', { to: ['counter'] });
  const run = await playConversation({ ...support, agents }, said, { models });
  expect(run).toHaveAnswered('desk', 'mia', 'Good day.');
  expect(run).toHaveBeenTold('desk', /^read_artifact: /);
});

test('a company may be the path of its agents file', async () => {
  const file = path.join(import.meta.dirname, '../../../examples/quickstart/agents.ts');
  const run = await playConversation(file, 'Plan a release', { data: 'folder' });
  expect(run.place?.agentsFile).toBe(file);
  expect(existsSync(run.place?.data ?? '')).toBe(true);
});

test('a wrong definition is refused as createTroupe does', async () => {
  await expect(playConversation({ agents: [] }, 'Hello')).rejects.toMatchObject({ code: 'config_invalid' });
});

const tried = describeConversation(
  support,
  (scenario) => {
    scenario('a complaint', [COMPLAINT, dana.answers('refund it')], {
      'Dana is asked': (run) => expect(run).toHaveAsked('billing', 'dana'),
    });
    scenario('the desk is kind', 'Thank you.', (run) => expect(run).toHaveSaid('desk', 'welcome'));
  },
  { name: 'scenarios of the support company' },
);

test('the claims of scenarios are tried with a changed company, and each failure has its name', async () => {
  expect((await tried.tryWith()).filter(({ error }) => error)).toEqual([]);
  const models = { desk: { rules: [{ reply: 'What?' }] } };
  const failures = (await tried.tryWith(support, { models })).filter(({ error }) => error);
  expect(failures.map(({ scenario, claim }) => `${scenario}: ${claim}`)).toEqual([
    'a complaint: the script is played to its end',
    'a complaint: Dana is asked',
    'the desk is kind: the desk is kind',
  ]);
});

test('each scenario claims that its log is sound and that no turn failed', async () => {
  const models = { desk: { rules: [{ when: { contains: 'nothing' }, reply: 'Never.' }] } };
  const failures = (await tried.tryWith(support, { models })).filter(({ error }) => error);
  const sound = failures.filter(({ claim }) => claim === 'the log is sound, and no turn failed');
  expect(sound).toHaveLength(2);
  expect(sound[0]?.error?.message).toContain('provider_invalid_request: no rule of the script matches');
});
