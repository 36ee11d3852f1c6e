import { expect, test } from 'vitest';
import * as z from 'zod';
import { decideApproval, isDecidable } from '../../src/actors/tasks/task-commands.ts';
import { readTasks } from '../../src/actors/log/tasks.ts';
import type { Event } from '../../src/events/index.ts';
import { type Approval, defineTool } from '../../src/tools/tool.ts';
import { BEN, decide, mailer, only, requestIn, wellFormed } from '../support/approvals.ts';
import { asks, inOrder, says, shown, times } from '../support/engine-models.ts';
import { ANA, openStage } from '../support/engine-stage.ts';

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  schema: z.object({}),
  run: () => 'seen',
});

/** A conversation in which @bo has asked to send a mail to Eve. */
async function asked(options: { needsApproval?: Approval; args?: unknown } = {}) {
  const { needsApproval = true, args = { to: 'eve' } } = options;
  const tool = mailer(needsApproval);
  const bo = inOrder(asks(['mail', args]), says('done as you say'));
  const stage = await openStage({ tools: [tool.mail], agents: [{ id: 'bo', model: bo, tools: ['mail'] }] });
  await stage.say('c', 'write to eve', ['bo']);
  await stage.quiet();
  return { stage, bo, ...tool, request: await requestIn(stage.troupe) };
}

test('a call that needs approval runs once, only after it, and with the approved arguments', async () => {
  const { stage, bo, sent, request } = await asked();
  expect(sent).toEqual([]);
  expect(bo.requests).toHaveLength(1);
  const { tasks } = await stage.troupe.tasks('c');
  expect(tasks).toMatchObject([
    { id: request, kind: 'approval', owner: 'bo', tool: 'mail', args: '{"to":"eve"}', end: null },
  ]);
  expect(await stage.actor('c', 'bo')).toMatchObject({ turn: null, timers: [{ task: request }] });

  const decided = await decide(stage.troupe, request, true, { note: 'go on' });
  expect(decided).toMatchObject({ kind: 'approval.decided', author: ANA, to: ['bo'] });
  await stage.quiet();
  expect(sent).toEqual(['eve']);
  const events = await stage.events('c');
  expect(only(events, 'tool.result').map(({ body }) => [body.call.slice(0, 2), body.outcome])).toEqual([
    ['ca', 'waiting'],
    ['a-', 'done'],
  ]);
  expect(bo.requests).toHaveLength(2);
  const resumed = bo.requests[1];
  const calls = resumed?.messages.flatMap((message) =>
    message.role === 'assistant' ? (message.calls ?? []) : [],
  );
  expect(calls?.at(-1)).toEqual({ id: request, name: 'mail', args: '{"to":"eve"}' });
  expect(resumed?.messages.at(-1)).toMatchObject({ role: 'tool', call: request, content: 'sent to eve' });
  expect(times(shown(resumed), 'go on')).toBeGreaterThan(0);
  await wellFormed(stage, bo.requests);
  await stage.clock.advance(stage.deps.limits.approvalMs * 2);
  await stage.quiet();
  expect(sent).toEqual(['eve']);
});

test('a prompt after an approved call can be read, verified and priced although its turn has none for step 1', async () => {
  const { stage, request } = await asked();
  await decide(stage.troupe, request, true);
  await stage.quiet();
  const { troupe } = stage;
  expect(await troupe.promptOf('c:bo:2')).toMatchObject({ step: 2, verified: true });
  expect(await troupe.promptOf('c:bo:2', 2)).toMatchObject({ step: 2, verified: true });
  await expect(troupe.promptOf('c:bo:2', 1)).rejects.toMatchObject({ code: 'turn_unknown' });
  expect(await troupe.promptOf('c:bo:2')).toMatchObject({
    cached: { messages: expect.any(Number) as number },
  });
  expect((await troupe.trace('c:bo:2')).prompts).toMatchObject([{ step: 2 }]);
  const { rows } = await troupe.cacheCost('c', 'bo');
  expect(rows).toMatchObject([
    { turn: 'c:bo:1', step: 1, verified: true },
    { turn: 'c:bo:2', step: 2, verified: true },
  ]);
  expect((await troupe.diff('c:bo:1', 'c:bo:2')).toolsChanged).toBe(false);
  await stage.say('c', 'thanks', ['bo']);
  await stage.quiet();
  expect(await troupe.promptOf('c:bo:3')).toMatchObject({ verified: true });
  expect((await troupe.promptOf('c:bo:3')).cached.messages).toBeGreaterThan(1);
});

test.each(['denied', 'expired', 'cancelled'] as const)(
  'a call whose approval is %s never runs, and the model learns so once',
  async (end) => {
    const { stage, bo, sent, request } = await asked({ needsApproval: { deadlineMs: 50_000 } });
    if (end === 'denied') await decide(stage.troupe, request, false, { note: 'not to Eve' });
    for (let n = 0; end === 'expired' && n < 10; n++) {
      await stage.clock.advance(10_000);
      await stage.quiet();
    }
    if (end === 'cancelled')
      await stage.troupe.command(
        { command: 'cancelTask', conversation: 'c' as Event['conversation'], task: request },
        ANA,
      );
    await stage.quiet();
    expect(sent).toEqual([]);
    expect((await stage.troupe.tasks('c')).tasks).toMatchObject([{ end: { outcome: end } }]);
    expect(bo.requests).toHaveLength(2);
    expect(times(shown(bo.requests[1]), `(${request} is ${end})`)).toBe(1);
    await expect(decide(stage.troupe, request, true)).rejects.toMatchObject({ code: 'command_refused' });
    await stage.quiet();
    expect(sent).toEqual([]);
    await wellFormed(stage, bo.requests);
  },
);

test('no one can approve after the deadline, even before the timer has fired', async () => {
  const { stage, sent, request } = await asked();
  const late = new Date(stage.clock.now() + stage.deps.limits.approvalMs);
  const clock = { ...stage.deps.clock, now: () => late.getTime() };
  const log = {
    tenant: 'default' as Event['tenant'],
    conversation: 'c' as Event['conversation'],
  };
  await expect(
    decideApproval({ ...stage.deps, clock }, log, { request, approved: true }, ANA),
  ).rejects.toThrow(/deadline has passed/);
  const task = (await readTasks(stage.deps.store, log)).fold.tasks.get(request);
  if (task?.kind !== 'approval') throw new Error('no approval waits');
  const isDecidableAt = (now: number) => isDecidable(task, ANA, { trust: null, isArchived: false, now });
  const { deadline = 0 } = task.body;
  expect([deadline - 1, deadline].map(isDecidableAt)).toEqual([true, false]);
  await stage.quiet();
  expect(sent).toEqual([]);
});

test('an approval is bound to the arguments shown, and to those who may decide', async () => {
  const { stage, sent, request } = await asked({ needsApproval: { by: ['u2'] } });
  const refused = (more: Parameters<typeof decide>[3]) =>
    expect(decide(stage.troupe, request, true, more)).rejects.toMatchObject({ code: 'command_refused' });
  await refused({});
  await refused({ by: { kind: 'agent', id: 'u2', name: 'Ben' } });
  await refused({ by: { kind: 'system', id: 'u2', name: 'Ben' } });
  await refused({ by: BEN, argsHash: 'of something else' });
  await refused({ by: BEN, argsHash: 'of something else' });
  await stage.quiet();
  expect(sent).toEqual([]);
  const errors = only(await stage.events('c'), 'error');
  expect(errors).toHaveLength(4);
  for (const { author, to, body } of errors) {
    expect({ author, to, code: body.code }).toMatchObject({
      author: { kind: 'system' },
      to: [],
      code: 'command_refused',
    });
  }
  const { argsHash = '' } = (await stage.troupe.tasks('c')).tasks[0] ?? {};
  await decide(stage.troupe, request, true, { by: BEN, argsHash });
  await stage.quiet();
  expect(sent).toEqual(['eve']);
  expect(await stage.check('c')).toEqual([]);
});

test('a message that claims an approval decides nothing, whoever wrote it', async () => {
  const { stage, sent, request } = await asked();
  const opened = (await stage.troupe.tasks('c')).tasks[0]?.openedAt.event;
  for (const author of [ANA, { kind: 'agent', id: 'bo', name: 'bo' } as const]) {
    await stage.troupe.send('c', {
      author,
      content: `approved ${request}`,
      ...(opened && { replyTo: opened }),
    });
    await stage.troupe.send('c', { author, content: 'approved' });
  }
  await stage.quiet();
  expect(sent).toEqual([]);
  expect((await stage.troupe.tasks('c', { open: true })).tasks).toHaveLength(1);
});

test('a repeated decision is the same event; a different one is too late and names who decided', async () => {
  const { stage, sent, request } = await asked();
  const [first, again] = await Promise.all([
    decide(stage.troupe, request, true),
    decide(stage.troupe, request.slice(0, 6), true),
  ]);
  expect(again.seq).toBe(first.seq);
  await stage.quiet();
  for (let n = 0; n < 3; n++)
    await expect(decide(stage.troupe, request, false, { by: BEN })).rejects.toThrow(
      /Ana \(u1\) approved it at 20/,
    );
  expect(only(await stage.events('c'), 'error')).toHaveLength(1);
  expect(sent).toEqual(['eve']);
});

test('a condition selects the calls that need approval; if it throws, approval is needed', async () => {
  const conditions: Approval[] = [
    ({ to }: { to: string }) => to === 'eve',
    () => {
      throw new Error('cannot say');
    },
  ] as Approval[];
  const [picky, broken] = conditions;
  const ran = [];
  for (const [needsApproval, args] of [
    [picky, { to: 'adam' }],
    [picky, { to: 'eve' }],
    [broken, { to: 'adam' }],
  ] as const) {
    const { stage, sent } = await asked({ args, ...(needsApproval && { needsApproval }) });
    const open = (await stage.troupe.tasks('c', { open: true })).tasks.length;
    ran.push({ sent: sent.length, open });
  }
  expect(ran).toEqual([
    { sent: 1, open: 0 },
    { sent: 0, open: 1 },
    { sent: 0, open: 1 },
  ]);
});

test.each([
  ['are no JSON', '{"to": "adam"', /^the arguments of mail are not valid JSON/],
  ['do not fit the schema', { whom: 'adam' }, /^the arguments of mail do not fit its schema:\nto: /],
])(
  'nobody is asked about a call whose arguments %s: the model is told what is wrong',
  async (_, wrong, why) => {
    for (const needsApproval of [true, ({ to }: { to: string }) => to === 'adam'] as Approval[]) {
      const { mail, sent } = mailer(needsApproval);
      const bo = inOrder(asks(['mail', wrong]), asks(['mail', { to: 'adam' }]), says('done'));
      const stage = await openStage({ tools: [mail], agents: [{ id: 'bo', model: bo, tools: ['mail'] }] });
      await stage.say('c', 'write to adam', ['bo']);
      await stage.quiet();
      expect(sent).toEqual([]);
      const results = only(await stage.events('c'), 'tool.result').map(({ body }) => body);
      expect(results).toMatchObject([
        { outcome: 'failed', content: expect.stringMatching(why) },
        { outcome: 'waiting' },
      ]);
      const { tasks } = await stage.troupe.tasks('c');
      expect(tasks.map(({ args }) => args)).toEqual(['{"to":"adam"}']);
      await decide(stage.troupe, await requestIn(stage.troupe), true);
      await stage.quiet();
      expect(sent).toEqual(['adam']);
    }
  },
);

test('other parallel calls run, the turn ends, and the resumed model sees the results of all', async () => {
  const { sent, mail } = mailer();
  const bo = inOrder(
    asks(['look', {}], ['mail', { to: 'eve' }], ['mail', { to: 'adam' }], ['look', {}]),
    says('all done'),
  );
  const stage = await openStage({
    tools: [mail, look],
    agents: [{ id: 'bo', model: bo, tools: ['mail', 'look'] }],
  });
  await stage.say('c', 'write to both', ['bo']);
  await stage.quiet();
  expect(only(await stage.events('c'), 'tool.result').map(({ body }) => body.outcome)).toEqual([
    'done',
    'waiting',
    'waiting',
    'done',
  ]);
  const [eve, adam] = (await stage.troupe.tasks('c', { open: true })).tasks;
  await Promise.all([
    decide(stage.troupe, eve?.id ?? '', true),
    decide(stage.troupe, adam?.id ?? '', false, { by: BEN }),
  ]);
  await stage.quiet();
  expect(sent).toEqual(['eve']);
  const last = bo.requests.at(-1);
  expect(times(shown(last), 'seen')).toBe(2);
  expect(times(shown(last), 'sent to eve')).toBe(1);
  expect(times(shown(last), `(${adam?.id} is denied)`)).toBe(1);
  await wellFormed(stage, bo.requests);
});
