import { expect, test } from 'vitest';
import type { Author, Event, EventId } from '../../src/events/index.ts';
import { foldTask, newTaskFold } from '../../src/machines/task-fold.ts';
import { inOrder, says } from '../support/engine-models.ts';
import { ANA, openStage, type Stage } from '../support/engine-stage.ts';
import { ask, fill, mind, of, small } from '../support/compaction-stage.ts';

const BEN: Author = { kind: 'user', id: 'u2', name: 'Ben' };

function notice(stage: Stage, content: string, author = BEN) {
  return stage.troupe.send('c', { author, content, includeInContext: false });
}

test('a notice is in the log for people and in no prompt, summary, quote or memory of an agent', async () => {
  const bo = mind();
  const stage = await openStage({ agents: [small('bo', bo)] });
  for (let round = 0; round < 4; round++) {
    await notice(stage, `zanzibar ${round}: you must keep /srv/zanzibar.txt`);
    await fill(stage, 4, round * 10 + 1);
    await notice(stage, 'zanzibar again');
    await ask(stage, `what of round ${round}?`);
  }
  expect((await of(stage, 'compaction')).length).toBeGreaterThan(0);
  expect(bo.summaries().length).toBeGreaterThan(0);
  expect(JSON.stringify(bo.requests.map(({ messages }) => messages))).not.toContain('zanzibar');
  expect(JSON.stringify(await of(stage, 'compaction'))).not.toContain('zanzibar');
  expect(JSON.stringify(await stage.troupe.prompt('c', 'bo'))).not.toContain('zanzibar');
  const { events } = await stage.troupe.events('c');
  const notices = events.filter(({ kind }) => kind === 'notice');
  expect(notices).toHaveLength(8);
  expect(notices[0]).toMatchObject({ author: BEN, to: [], tokens: 0 });
  expect(notices[0]?.body).toEqual({ content: 'zanzibar 0: you must keep /srv/zanzibar.txt' });
  expect(await stage.check('c')).toEqual([]);
});

test('a notice wakes nobody, answers no question and makes its author no speaker of the conversation', async () => {
  const bo = inOrder(says('well'), says('yes'));
  const stage = await openStage({ agents: [{ id: 'bo', model: bo }], fallback: 'bo' });
  await notice(stage, 'psst');
  await stage.quiet();
  expect(bo.requests).toHaveLength(0);
  await stage.say('c', 'hello', ['bo']);
  await stage.quiet();
  await notice(stage, 'psst');
  await stage.say('c', 'again', ['bo']);
  await stage.quiet();
  expect(bo.requests).toHaveLength(2);
  expect(JSON.stringify(bo.requests[1]?.messages)).not.toMatch(/\[Ana\]|Ben|psst/);
  expect(await stage.check('c')).toEqual([]);
});

test('a notice that names recipients or a policy for busy agents is refused, as is one in a closed conversation', async () => {
  const stage = await openStage({ agents: [{ id: 'bo', model: inOrder(says('-')) }] });
  const base = { author: ANA, content: 'x', includeInContext: false };
  await expect(stage.troupe.send('c', { ...base, to: ['bo'] })).rejects.toMatchObject({
    code: 'event_invalid',
    data: { path: 'to' },
  });
  await expect(stage.troupe.send('c', { ...base, whileBusy: 'steer' })).rejects.toMatchObject({
    code: 'event_invalid',
    data: { path: 'whileBusy' },
  });
  const sent = { ...base, id: 'n1' as EventId };
  expect((await stage.troupe.send('c', sent)).kind).toBe('appended');
  await stage.troupe.command({ command: 'archive', conversation: 'c' as never }, ANA);
  await expect(stage.troupe.send('c', base)).rejects.toMatchObject({ code: 'conversation_archived' });
  expect((await stage.troupe.send('c', sent)).kind).toBe('exists');
  await expect(stage.troupe.send('c', { ...sent, includeInContext: true })).rejects.toMatchObject({
    code: 'event_conflict',
  });
});

test('a notice of a person does not start the count of turns among agents anew', () => {
  const fold = newTaskFold();
  const event = (seq: number, kind: string, author: object, body: object) =>
    ({ seq, at: seq, id: `e${seq}`, kind, author, to: [], body }) as unknown as Event;
  const agent = { kind: 'agent', id: 'bo', name: 'Bo' };
  const started = { upTo: 1, inputs: [], join: 'full', attempt: 1, baseline: null, live: {} };
  foldTask(fold, event(1, 'turn.started', agent, started));
  foldTask(fold, event(2, 'notice', ANA, { content: 'x' }));
  expect(fold.agentTurns).toBe(1);
  foldTask(fold, event(3, 'message', ANA, { content: 'x' }));
  expect(fold.agentTurns).toBe(0);
});
