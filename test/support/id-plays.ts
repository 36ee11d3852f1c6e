import * as z from 'zod';
import type { Event } from '../../src/events/index.ts';
import { createFakeSessions, newSessionMemory } from '../../packages/testing/src/fake-sessions.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { decide, mailer, requestIn } from './approvals.ts';
import { asks, inOrder, says } from './engine-models.ts';
import { ANA, openStage, type Stage, type StageOptions } from './engine-stage.ts';
import { ask, fill, mind, small } from './compaction-stage.ts';

/** Short plays that together make the runtime mint every sort of id, always the same ones. */
export interface IdPlay {
  name: string;
  open(options?: Partial<StageOptions>): Promise<Stage>;
  act(stage: Stage): Promise<void>;
}

const report = defineTool({
  name: 'report',
  description: 'The report of a day.',
  schema: z.looseObject({}),
  run: () => 'all quiet at the harbour, as on the day before; '.repeat(80),
});

const STEPS = [
  { id: 'plan', agent: 'bo', brief: 'write the plan', phase: 'planning' },
  { id: 'check', agent: 'cy', brief: 'check the plan', phase: 'checking' },
];

async function say(stage: Stage, content = 'please', to = ['bo']): Promise<void> {
  await stage.say('c', content, to);
  await stage.quiet();
}

export const ID_PLAYS: IdPlay[] = [
  {
    name: 'a task in a thread, a reminder, a list of things to do and a hand-over',
    open: (more) => {
      const bo = inOrder(
        asks(
          ['todo', { items: [{ text: 'ships', status: 'done' }] }],
          ['remind', { inMinutes: 1, text: 'x' }],
        ),
        asks(['delegate', { to: 'cy', task: 'count the ships' }]),
        asks(['handoff', { to: 'cy', goal: 'tell Ana' }]),
        says('reminded'),
      );
      const tools = ['todo', 'remind', 'delegate', 'handoff'];
      const cy = inOrder(says('seven ships'), says('Ana, seven ships'));
      return openStage({
        agents: [
          { id: 'bo', model: bo, tools },
          { id: 'cy', model: cy },
        ],
        ...more,
      });
    },
    async act(stage) {
      await say(stage);
      await stage.clock.advance(120_000);
      await stage.quiet();
    },
  },
  {
    name: 'a call that a person approves',
    open: (more) => {
      const { mail } = mailer();
      const bo = inOrder(asks(['mail', { to: 'eve' }]), says('sent'));
      return openStage({ tools: [mail], agents: [{ id: 'bo', model: bo, tools: ['mail'] }], ...more });
    },
    async act(stage) {
      await say(stage);
      await decide(stage.troupe, await requestIn(stage.troupe), true);
      await stage.quiet();
    },
  },
  {
    name: 'a question to people',
    open: (more) => {
      const bo = inOrder(asks(['ask', { to: 'people', question: 'which harbour?' }]), says('thanks'));
      return openStage({ agents: [{ id: 'bo', model: bo, tools: ['ask'] }], ...more });
    },
    async act(stage) {
      await say(stage);
      const question = await requestIn(stage.troupe);
      if (question === '') return;
      await stage.troupe.command(
        { command: 'answer', conversation: 'c' as never, question, content: 'ours' },
        ANA,
      );
      await stage.quiet();
    },
  },
  {
    name: 'the session of a provider that remembers',
    open: (more) => {
      const answer = () => inOrder(says('ok')).stream({} as never, { signal: new AbortController().signal });
      const model = createFakeSessions({ answer, memory: newSessionMemory() });
      return openStage({ agents: [{ id: 'bo', model }], ...more });
    },
    async act(stage) {
      await say(stage);
      await say(stage, 'and again');
    },
  },
  {
    name: 'a compaction that two agents share',
    open: (more) => openStage({ agents: [small('bo', mind()), small('cy', mind())], ...more }),
    async act(stage) {
      await fill(stage, 20);
      await ask(stage, 'now?');
      await ask(stage, 'and you?', ['cy']);
      await fill(stage, 20, 30);
      await ask(stage, 'once more?');
    },
  },
  {
    name: 'old outputs of tools that are pruned',
    open: (more) => {
      const bo = mind({
        turn: ({ messages }) => (messages.at(-1)?.role === 'user' ? asks(['report', {}]) : says('quiet')),
      });
      const policy = { prune: { protectTokens: 500, minGain: 500 } };
      return openStage({
        tools: [report],
        agents: [small('bo', bo, { tools: ['report'] })],
        policy,
        ...more,
      });
    },
    async act(stage) {
      for (let day = 1; day <= 8; day += 1) await ask(stage, `day ${day}?`);
    },
  },
  {
    name: 'a workflow in phases',
    open: (more) =>
      openStage({
        agents: [
          { id: 'bo', model: inOrder(says('the plan')) },
          { id: 'cy', model: inOrder(says('it is fine')) },
        ],
        workflows: [{ id: 'release', directive: 'ship it', steps: STEPS }] as StageOptions['workflows'],
        ...more,
      }),
    async act(stage) {
      const run = { command: 'run', workflow: 'release', run: 'r1', conversation: 'c' as never } as const;
      await stage.troupe.command(run, ANA);
      await stage.quiet();
    },
  },
];

/** All stored events, by conversation. */
export async function logsOf(stage: Stage): Promise<Map<string, Event[]>> {
  const logs = new Map<string, Event[]>();
  for (const { id } of await stage.troupe.conversations()) logs.set(id, await stage.events(id));
  return logs;
}
