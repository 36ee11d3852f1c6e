import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import { defineTool } from '../../src/tools/tool.ts';
import { askedAndStopped, BEN, decide, mailer, only, requestIn, wellFormed } from '../support/approvals.ts';
import { mortal, tapDriver } from '../support/engine-driver.ts';
import { asks, inOrder, modelOf, says } from '../support/engine-models.ts';
import { randomOf } from '../support/engine-random.ts';
import { ANA, openStage, turns, until } from '../support/engine-stage.ts';
import { openDriver, openTroupe } from '../support/mode.ts';

test('when two people decide at once one wins, in any interleaving, and the call runs at most once', async () => {
  const outcomes = new Map<string, number>();
  for (let seed = 1; seed <= 100; seed++) {
    const random = randomOf(seed);
    const { sent, mail } = mailer();
    const bo = inOrder(asks(['mail', { to: 'eve' }]), says('so be it'));
    let isSlow = false;
    const driver = tapDriver(await openDriver(), async () => {
      if (isSlow) await turns(Math.floor(random() * 4));
    });
    const stage = await openStage({
      driver,
      random,
      tools: [mail],
      agents: [{ id: 'bo', model: bo, tools: ['mail'] }],
    });
    await stage.say('c', 'write to eve', ['bo']);
    await stage.quiet();
    const request = await requestIn(stage.troupe);
    isSlow = true;
    const both = [
      () => decide(stage.troupe, request, true),
      () => decide(stage.troupe, request, false, { by: BEN }),
    ];
    if (seed % 2 === 0) both.reverse();
    const ends = await Promise.allSettled(both.map((each) => each()));
    await stage.quiet();
    const won = ends.filter(({ status }) => status === 'fulfilled');
    expect(won).toHaveLength(1);
    const decided = only(await stage.events('c'), 'approval.decided');
    expect(decided).toHaveLength(1);
    const outcome = decided[0]?.body.outcome ?? '';
    expect(sent).toEqual(outcome === 'approved' ? ['eve'] : []);
    expect(only(await stage.events('c'), 'error')).toHaveLength(1);
    expect(bo.requests).toHaveLength(2);
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    expect(await stage.check('c')).toEqual([]);
  }
  expect([...outcomes.keys()].toSorted()).toEqual(['approved', 'denied']);
});

test('a request survives a restart, and after a crash behind the decision the call runs once', async () => {
  const { sent, driver, open, request } = await askedAndStopped();
  const second = mortal(driver);
  const dying = await open(second.driver);
  expect(await requestIn(dying.troupe)).toBe(request);
  await decide(dying.troupe, request, true);
  second.kill();
  expect(sent.length).toBeLessThanOrEqual(1);

  const third = await open();
  await third.clock.advance(60_000);
  await third.quiet();
  expect(sent).toEqual(['eve']);
  expect(only(await third.events('c'), 'message').at(-1)?.body.content).toBe('sent');
  expect(await third.check('c')).toEqual([]);
});

test('an approved call whose process dies while it runs is lost and not repeated', async () => {
  const runs: string[] = [];
  const began = Promise.withResolvers<void>();
  const mail = defineTool({
    name: 'mail',
    description: 'Sends a mail.',
    schema: z.object({ to: z.string() }),
    needsApproval: true,
    async run({ to }) {
      runs.push(to);
      began.resolve();
      await new Promise(() => undefined);
      return '';
    },
  });
  const bo = inOrder(asks(['mail', { to: 'eve' }]), says('I will look whether it was sent'));
  const driver = await openDriver();
  const first = mortal(driver);
  const agents = [{ id: 'bo', model: bo, tools: ['mail'] }];
  const dying = await openStage({ driver: first.driver, tools: [mail], agents });
  await dying.say('c', 'write to eve', ['bo']);
  await dying.quiet();
  await decide(dying.troupe, await requestIn(dying.troupe), true);
  await began.promise;
  first.kill();

  const stage = await openStage({ driver, tools: [mail], agents });
  await stage.clock.advance(60_000);
  await stage.quiet();
  expect(runs).toEqual(['eve']);
  expect(only(await stage.events('c'), 'tool.result').at(-1)?.body.outcome).toBe('lost');
  await wellFormed(stage, bo.requests);
});

test('the data are closed and reopened between request and decision', async () => {
  const data = mkdtempSync(path.join(tmpdir(), 'troupe-approval-'));
  onTestFinished(() => rmSync(data, { recursive: true, force: true }));
  const { sent, mail } = mailer();
  const rules = [
    { when: { contains: 'sent to' }, reply: 'it is sent' },
    { when: { contains: 'write' }, reply: '', calls: [{ name: 'mail', args: { to: 'eve' } }] },
    { reply: 'else' },
  ];
  const company = {
    agents: [{ id: 'bo', provider: 'scripted' as const, script: { rules }, tools: ['mail'] }],
    tools: [mail],
  };
  const first = await openTroupe(company, { data });
  await first.send('c', { author: ANA, content: 'write to eve', to: ['bo'] });
  await first.idle();
  await first.close();
  await using troupe = await openTroupe(company, { data });
  await troupe.idle();
  expect(sent).toEqual([]);
  await decide(troupe, await requestIn(troupe), true);
  await troupe.idle();
  expect(sent).toEqual(['eve']);
  const { events } = await troupe.events('c');
  expect(only(events, 'message').at(-1)?.body.content).toBe('it is sent');
});

test('a decision used by an aborted turn is not used again', async () => {
  const { sent, mail } = mailer();
  const held = Promise.withResolvers<void>();
  const answers = [asks(['mail', { to: 'eve' }]), null, says('gone on')];
  let call = 0;
  const model = modelOf(async function* () {
    const answer = answers[call++];
    if (answer) yield* answer;
    else {
      held.resolve();
      await new Promise(() => undefined);
    }
  });
  const stage = await openStage({ tools: [mail], agents: [{ id: 'bo', model, tools: ['mail'] }] });
  await stage.say('c', 'write to eve', ['bo']);
  await stage.quiet();
  await decide(stage.troupe, await requestIn(stage.troupe), true);
  await held.promise;
  expect(sent).toEqual(['eve']);
  await stage.troupe.command({ command: 'abort', turn: 'c:bo:2' as never }, ANA);
  await stage.quiet();
  await stage.say('c', 'and now?', ['bo']);
  await stage.quiet();
  expect(sent).toEqual(['eve']);
  expect(model.requests).toHaveLength(3);
  await wellFormed(stage, model.requests);
});

test('the request of a turn that is stopped before its end asks no one', async () => {
  const { sent, mail } = mailer();
  const entered = Promise.withResolvers<void>();
  const slow = defineTool({
    name: 'slow',
    description: 's',
    schema: z.object({}),
    async run(_, { signal }) {
      entered.resolve();
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return 'late';
    },
  });
  const bo = inOrder(asks(['mail', { to: 'eve' }], ['slow', {}]), says('ok'));
  const stage = await openStage({
    tools: [mail, slow],
    agents: [{ id: 'bo', model: bo, tools: ['mail', 'slow'] }],
  });
  await stage.say('c', 'write', ['bo']);
  await until('the tool runs', () => bo.requests.length === 1);
  await entered.promise;
  await stage.troupe.command({ command: 'abort', turn: 'c:bo:1' as never }, ANA);
  await stage.quiet();
  expect((await stage.troupe.tasks('c')).tasks).toEqual([]);
  await stage.say('c', 'go on', ['bo']);
  await stage.quiet();
  expect(sent).toEqual([]);
  await wellFormed(stage, bo.requests);
});
