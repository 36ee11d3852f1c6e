import { expect, test } from 'vitest';
import { createApp } from '../../src/http/api/index.ts';
import {
  askedAndStopped,
  BEN,
  decide,
  mailer,
  only,
  requestIn,
  scriptedMailer,
  wellFormed,
} from '../support/approvals.ts';
import { mortal } from '../support/engine-driver.ts';
import { asks, inOrder, says, shown } from '../support/engine-models.ts';
import { ANA, openStage } from '../support/engine-stage.ts';
import { openTroupe } from '../support/mode.ts';

/** A conversation in which @bo has asked to send a mail to Eve. */
async function asked() {
  const { sent, mail } = mailer();
  const bo = inOrder(asks(['mail', { to: 'eve' }]), says('done as you say'));
  const stage = await openStage({ tools: [mail], agents: [{ id: 'bo', model: bo, tools: ['mail'] }] });
  await stage.say('c', 'write to eve', ['bo']);
  await stage.quiet();
  return { stage, bo, sent, request: await requestIn(stage.troupe) };
}

test('an approver may change the arguments: the call runs with them, the log says who changed what, the model is told', async () => {
  const { stage, bo, sent, request } = await asked();
  await decide(stage.troupe, request, true, { by: BEN, args: { to: 'dan' }, note: 'not Eve' });
  await stage.quiet();
  expect(sent).toEqual(['dan']);
  const events = await stage.events('c');
  expect(only(events, 'approval.requested')[0]?.body.args).toBe('{"to":"eve"}');
  expect(only(events, 'approval.decided')).toMatchObject([
    { author: BEN, body: { outcome: 'approved', args: '{"to":"dan"}', note: 'not Eve' } },
  ]);
  const resumed = bo.requests[1];
  expect(shown(resumed)).toContain(
    `(${request} is approved, with other arguments than you gave: {"to":"dan"}) not Eve`,
  );
  const calls = resumed?.messages.flatMap((each) => (each.role === 'assistant' ? (each.calls ?? []) : []));
  expect(calls?.at(-1)).toEqual({ id: request, name: 'mail', args: '{"to":"dan"}' });
  expect(resumed?.messages.at(-1)).toMatchObject({ role: 'tool', call: request, content: 'sent to dan' });
  await wellFormed(stage, bo.requests);
  expect((await stage.troupe.promptOf('c:bo:2')).verified).toBe(true);
});

test('changed arguments that do not fit the tool are refused by name, and the request stays open', async () => {
  const { stage, sent, request } = await asked();
  await expect(decide(stage.troupe, request, true, { args: { to: 1 } })).rejects.toMatchObject({
    code: 'event_invalid',
    message: expect.stringMatching(
      /^args: the changed arguments do not fit the schema of mail: to: .*string/,
    ),
  });
  await expect(decide(stage.troupe, request, false, { args: { to: 'dan' } })).rejects.toThrow(
    /^args: only an approval can change the arguments/,
  );
  await expect(decide(stage.troupe, request, true, { args: { to: 'x'.repeat(100_001) } })).rejects.toThrow(
    /at most 100000 are taken/,
  );
  await decide(stage.troupe, request, true);
  await stage.quiet();
  expect(sent).toEqual(['eve']);
});

test('the same arguments are no change, and the same decision again is the same event', async () => {
  const { stage, request } = await asked();
  const plain = await decide(stage.troupe, request, true, { args: { to: 'eve' } });
  expect(plain.body).toEqual({ request, outcome: 'approved', note: '' });
  expect((await decide(stage.troupe, request, true)).id).toBe(plain.id);
  const second = await asked();
  const changed = await decide(second.stage.troupe, second.request, true, { args: { to: 'dan' } });
  const again = await decide(second.stage.troupe, second.request, true, { args: { to: 'dan' } });
  expect(again.seq).toBe(changed.seq);
  await expect(decide(second.stage.troupe, second.request, true)).rejects.toThrow(
    /Ana \(u1\) approved it with changed arguments at /,
  );
});

test('a hash of the arguments that were looked at is of the requested ones', async () => {
  const { stage, sent, request } = await asked();
  const [task] = (await stage.troupe.tasks('c')).tasks;
  await expect(
    decide(stage.troupe, request, true, { argsHash: 'other', args: { to: 'dan' } }),
  ).rejects.toThrow(/other arguments/);
  await decide(stage.troupe, request, true, { argsHash: task?.argsHash ?? '', args: { to: 'dan' } });
  await stage.quiet();
  expect(sent).toEqual(['dan']);
});

test('a crash between decision and run keeps the changed arguments', async () => {
  const { sent, driver, open, request } = await askedAndStopped();
  const second = mortal(driver);
  const dying = await open(second.driver);
  await decide(dying.troupe, request, true, { args: { to: 'dan' } });
  second.kill();
  const third = await open();
  await third.clock.advance(60_000);
  await third.quiet();
  expect(sent).toEqual(['dan']);
  expect(await third.check('c')).toEqual([]);
});

test('changed arguments are redacted like those of a model, and the call runs with what is stored', async () => {
  const { sent, definition } = scriptedMailer();
  await using troupe = await openTroupe({
    ...definition,
    redact: (text) => text.replaceAll('secret', '***'),
  });
  await troupe.ask('c', 'write');
  const request = await requestIn(troupe);
  for (let time = 0; time < 2; time++) await decide(troupe, request, true, { args: { to: 'secret' } });
  await troupe.idle();
  expect(sent).toEqual(['***']);
});

test('over HTTP a decision carries changed arguments, and wrong ones are a 400', async () => {
  const { sent, definition } = scriptedMailer();
  await using troupe = await openTroupe(definition);
  const app = createApp(troupe);
  await troupe.send('c', { author: ANA, to: ['bo'], content: 'write' });
  await troupe.idle();
  const request = await requestIn(troupe);
  const post = (args: unknown) =>
    app.request('/api/commands', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        command: 'decide',
        conversation: 'c',
        request,
        approved: true,
        args,
        author: ANA,
      }),
    });
  for (const args of [{ to: 1 }, 'eve', ['eve']]) {
    const refused = await post(args);
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: { code: 'event_invalid' } }]);
  }
  expect((await post({ to: 'dan' })).status).toBe(202);
  await troupe.idle();
  expect(sent).toEqual(['dan']);
});
