import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { runChecks } from '../../src/cli/commands/doctor.ts';
import { stuckLines } from '../../src/cli/commands/overview.ts';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { Author, ConversationId, Event } from '../../src/events/index.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { IS_DISTRIBUTED, openTroupe } from '../support/mode.ts';
import { untilHolds } from '../support/until-holds.ts';

const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };
const call = (contains: string, name: string, args: object) => ({
  when: { contains, step: 1 },
  calls: [{ name, args }],
});
const agent = (id: string, tool: string, ...rules: object[]) => ({
  id,
  provider: 'scripted' as const,
  tools: [tool],
  script: { rules },
});
const lead = agent('lead', 'delegate', call('Go.', 'delegate', { to: 'worker', task: 'Find it.' }), {
  reply: 'The lead has heard.',
});
const workerAs = (id: string) =>
  agent(id, 'ask', call('Find it.', 'ask', { question: 'Which one?', to: 'people' }), { reply: 'Found.' });

const newData = () => mkdtempSync(path.join(tmpdir(), 'troupe-undefined-'));
/** So slow that tasks are still open when the work is listed; with several processes it is listed only after three rounds. */
const SLOW_MS = IS_DISTRIBUTED ? 3_000 : 60_000;
const warned: string[] = [];

function open(agents: object[], data: string): Promise<Troupe> {
  return openTroupe({ agents } as unknown as TroupeInput, {
    data,
    constants: { limits: { sweepMs: 500 } },
    onWarning: (error, where) => void warned.push(`${where}: ${String(error)}`),
  });
}

/** Ana asks the lead, the lead delegates to the worker, and the worker asks a person. */
async function openTask(data: string): Promise<void> {
  await using troupe = await open([lead, workerAs('worker')], data);
  await troupe.send('c', { author: ANA, to: ['lead'], content: 'Go.' });
  await troupe.idle();
  expect((await troupe.tasks('c', { open: true })).tasks).toHaveLength(1);
}

async function all(troupe: Troupe, conversation = 'c'): Promise<Event[]> {
  return (await troupe.events(conversation)).events;
}

const holds = (check: () => Promise<boolean>) => untilHolds(async () => expect(await check()).toBe(true));

const heard = (troupe: Troupe) =>
  holds(async () =>
    (await all(troupe)).some(({ kind, author }) => kind === 'message' && author.id === 'lead'),
  );

describe('the assignee of an open task was renamed', () => {
  test('the task ends with the reason, and whoever waited goes on, although nobody has spoken to it', async () => {
    const data = newData();
    await openTask(data);
    warned.length = 0;
    await using troupe = await open([lead, workerAs('researcher')], data);
    await heard(troupe);
    expect((await all(troupe)).find(({ kind }) => kind === 'delegation.ended')).toMatchObject({
      author: { kind: 'system' },
      to: ['lead'],
      body: { outcome: 'cancelled', result: '@worker is no longer defined: it was renamed or removed' },
    });
    expect((await troupe.tasks('c', { open: true })).tasks).toEqual([]);
    expect(warned.filter((each) => each.startsWith('work of @worker'))).toHaveLength(1);
    await holds(async () => (await troupe.stuck()).total === 0);
  });

  test('until then it is listed as stuck, with what can be done', async () => {
    const data = newData();
    await openTask(data);
    const definition = { agents: [lead, workerAs('researcher')] } as unknown as TroupeInput;
    await using troupe = await openTroupe(definition, {
      data,
      constants: { limits: { sweepMs: SLOW_MS } },
      onWarning: () => undefined,
    });
    await holds(async () => (await troupe.stuck()).total > 0);
    const report = await troupe.stuck();
    expect(report.stuck).toMatchObject([
      {
        agent: 'worker',
        turn: null,
        reason: { kind: 'undefined', work: '1 task to do, 1 question' },
        actions: ['define'],
      },
    ]);
    expect(stuckLines(report).join('\n')).toMatch(
      /@worker in c\.d-\w+ has work but is not defined \(1 task to do, 1 question\)[^]*define @worker in the agents file again, or give the agent that it is now aliases: \["worker"\]; to end its tasks: troupe tasks c\.d-\w+ --open, troupe cancel/,
    );
  });

  test.skipIf(IS_DISTRIBUTED)('it goes on if it is defined again before that', async () => {
    const data = newData();
    await openTask(data);
    {
      await using troupe = await openTroupe({ agents: [lead] } as unknown as TroupeInput, {
        data,
        constants: { limits: { sweepMs: SLOW_MS } },
        onWarning: () => undefined,
      });
      await holds(async () => (await troupe.stuck()).total > 0);
    }
    await using troupe = await open([lead, workerAs('worker')], data);
    expect((await troupe.stuck()).stuck.filter(({ reason }) => reason.kind === 'undefined')).toEqual([]);
    const [task] = (await troupe.tasks('c', { open: true })).tasks as { thread?: ConversationId }[];
    const thread = task?.thread as ConversationId;
    const question = (await all(troupe, thread)).find(({ kind }) => kind === 'question');
    const id = (question?.body as { question: string } | undefined)?.question ?? '';
    await troupe.command(
      { command: 'answer', conversation: thread, question: id, content: 'The first.' },
      ANA,
    );
    await heard(troupe);
    expect((await all(troupe)).find(({ kind }) => kind === 'delegation.ended')).toMatchObject({
      body: { result: 'Found.' },
    });
  });
});

test('the tasks that a removed agent has given end too, so their assignees do not work for nobody', async () => {
  const data = newData();
  await openTask(data);
  await using troupe = await open([workerAs('worker')], data);
  await holds(async () => (await troupe.tasks('c', { open: true })).tasks.length === 0);
  expect((await all(troupe)).find(({ kind }) => kind === 'delegation.ended')).toMatchObject({
    body: { result: '@lead is no longer defined: it was renamed or removed' },
  });
});

test.skipIf(IS_DISTRIBUTED)(
  'the doctor names the agent and its work before anything is started',
  async () => {
    const data = newData();
    await openTask(data);
    const file = path.join(data, 'agents.json');
    const checksOf = async (...agents: object[]) => {
      writeFileSync(file, JSON.stringify({ agents }));
      const checks = await runChecks({ file, data, env: {} });
      return checks.filter(({ name }) => name === 'work');
    };
    expect(await checksOf(lead, workerAs('researcher'))).toEqual([
      {
        name: 'work',
        status: 'warning',
        detail: expect.stringMatching(
          /^@worker is not defined, but has work in c\.d-\w+: define it again .*aliases: \["worker"\].* There: 1 task to do, 1 question$/,
        ),
      },
    ]);
    expect(await checksOf(lead, workerAs('worker'))).toEqual([]);
  },
);
