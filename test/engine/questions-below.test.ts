import { expect, test } from 'vitest';
import { asks, gated, inOrder, modelOf, says, shown } from '../support/engine-models.ts';
import { ANA, openStage } from '../support/engine-stage.ts';

test('a question within a task is answered from the conversation that people know', async () => {
  const bo = inOrder(asks(['delegate', { to: 'cy', task: 'paint the door' }]), says('painted'));
  const cy = inOrder(asks(['ask', { question: 'which colour?' }]), says('it is red'));
  const stage = await openStage({
    agents: [
      { id: 'bo', model: bo, tools: ['delegate'] },
      { id: 'cy', model: cy, tools: ['ask'] },
    ],
  });
  await stage.say('c', 'please', ['bo']);
  await stage.quiet();
  const [delegation] = (await stage.troupe.tasks('c')).tasks;
  const [question] = (await stage.troupe.tasks(delegation?.thread ?? '')).tasks;
  await stage.troupe.command(
    { command: 'answer', conversation: 'c' as never, question: question?.id ?? '', content: 'red' },
    ANA,
  );
  await stage.quiet();
  expect(shown(cy.requests[1])).toContain('red');
  expect(shown(bo.requests[1])).toContain('it is red');
});

test('a result that waits for the rest of its group is listed as ended', async () => {
  const give = (to: string): [string, object] => ['delegate', { to, task: `the part of ${to}` }];
  const bo = inOrder(asks(give('cy'), give('di')), says('not yet'), says('both'));
  const stage = await openStage({
    agents: [
      { id: 'bo', model: bo, tools: ['delegate'] },
      { id: 'cy', model: inOrder(says('part one')) },
      { id: 'di', model: inOrder(asks(['ask', { question: 'how?' }]), says('part two')), tools: ['ask'] },
    ],
  });
  await stage.say('c', 'please', ['bo']);
  await stage.quiet();
  await stage.say('c', 'how far are you?', ['bo']);
  await stage.quiet();
  expect(shown(bo.requests[1])).toMatch(/@cy: the part of cy \(ended: you are told with the others\)/);
  expect(shown(bo.requests[1])).not.toContain('part one');
  expect(await stage.check('c')).toEqual([]);
});

test('a task ends although a late result arrives that its assignee did not need', async () => {
  const give = (question: string): [string, object] => ['ask', { question, until: 'first' }];
  const answer = gated(says('one answer is enough'), 1);
  const plan = inOrder(asks(give('which?'), give('when?')));
  const cy = modelOf((request, signal) =>
    request.messages.some(({ role }) => role === 'assistant')
      ? answer.stream(request, { signal })
      : plan.stream(request, { signal }),
  );
  const bo = inOrder(asks(['delegate', { to: 'cy', task: 'find out' }]), says('done'));
  const stage = await openStage({
    agents: [
      { id: 'bo', model: bo, tools: ['delegate'] },
      { id: 'cy', model: cy, tools: ['ask'] },
    ],
  });
  await stage.say('c', 'please', ['bo']);
  await stage.quiet();
  const thread = (await stage.troupe.tasks('c')).tasks[0]?.thread ?? '';
  const [which, when] = (await stage.troupe.tasks(thread)).tasks;
  for (const question of [which, when]) {
    const command = { command: 'answer' as const, conversation: thread as never, content: 'now' };
    await stage.troupe.command({ ...command, question: question?.id ?? '' }, ANA);
    if (question === which) await answer.reached();
  }
  answer.open();
  await stage.quiet();
  expect(shown(bo.requests[1])).toContain('one answer is enough');
  expect([...(await stage.check('c')), ...(await stage.check(thread))]).toEqual([]);
});
