import { describe, expect, test } from 'vitest';
import { needOrder } from '../../src/library/projection/needs.ts';
import { foldEvent, newProjection } from '../../src/library/projection/projection.ts';
import { rowOf } from '../../src/library/projection/row.ts';
import { agent, ANA, conditions, ends, folded, logOf, says, starts, SYSTEM } from './logs.ts';

const command = (name: string, id: string) => ({ kind: 'command', body: { command: name, agent: id } });
const left = (id: string, blocked = false) => ({
  kind: 'membership.changed',
  body: { change: 'left', agent: id, reason: '', ...(blocked && { blocked }) },
});
const asks = (id: string, question: string) => ({
  kind: 'question',
  author: agent(id),
  body: { question, text: 'Which?', by: [], choices: ['a', 'b'], group: 'g', join: 'all' },
});
/** The runtime's notice that an agent has failed. */
const failureOf = (id: string) => ({
  id: `failed:${id}:3`,
  kind: 'error',
  author: SYSTEM,
  body: { code: 'actor_corrupt', message: `@${id} has failed: its record cannot be read` },
});

test('an agent that joins is told with what it sees of the past, in words', () => {
  const joined = (policy: string) =>
    rowOf(
      logOf({
        kind: 'membership.changed',
        author: SYSTEM,
        body: { change: 'joined', agent: 'ada', policy },
      })[0]!,
    ).summary;
  expect(['full', 'fresh'].map(joined)).toEqual([
    '@ada joins',
    '@ada joins and sees nothing of what was said before',
  ]);
});

describe('an agent', () => {
  test('that was addressed and has not begun is idle, with its pending messages', () => {
    const { agents, turns } = folded(
      logOf(says('Hello', ['ada']), says(' ', ['ada']), says('And?', ['ada'])),
    );
    expect(agents['ada']).toMatchObject({ condition: 'idle', state: 'idle', pending: [1, 3], turns: 0 });
    expect(turns).toEqual([]);
  });

  test('that only spoke, as in an imported conversation, is idle and has nothing pending', () => {
    const { agents, totals } = folded(logOf(says('Hello'), says('Hi', [], agent('ada'))));
    expect(agents['ada']).toMatchObject({ condition: 'idle', pending: [], turns: 0, lastTurn: null });
    expect(totals).toMatchObject({ turns: 0, running: 0 });
  });

  test('runs from the start of a turn until its end', () => {
    const log = logOf(says('Go', ['ada']), starts('ada', 1, 1, [1]));
    expect(conditions(folded(log))).toEqual({ ada: 'running working' });
    expect(folded(log).totals.running).toBe(1);
    const done = logOf(says('Go', ['ada']), starts('ada', 1, 1, [1]), ends('ada', 1, 'done', [1]));
    expect(folded(done).agents['ada']).toMatchObject({
      condition: 'idle',
      pending: [],
      seen: 1,
      turn: null,
      lastTurn: 'c:ada:1',
      since: { seq: 3 },
      tokens: { input: 100, output: 10, cacheRead: 60, cacheWrite: 5 },
    });
  });

  test('backs off after a failed model call, and has no problem once its turn is done', () => {
    const failure = {
      kind: 'error',
      author: agent('ada'),
      turn: 'c:ada:1',
      body: { code: 'provider_overloaded', message: '529', step: 1, partial: '' },
    };
    const log = logOf(
      says('Go', ['ada']),
      starts('ada', 1, 1, [1]),
      failure,
      failure,
      ends('ada', 1, 'done', [1]),
    );
    const during = folded(log.slice(0, 4));
    expect(during.agents['ada']).toMatchObject({
      condition: 'running',
      state: 'backoff',
      problem: { seq: 4 },
    });
    expect(during.turns[0]).toMatchObject({ retries: 2, error: { code: 'provider_overloaded' } });
    expect(folded(log).agents['ada']).toMatchObject({ condition: 'idle', problem: null });
    expect(folded(log).turns[0]).toMatchObject({ status: 'done', retries: 2, error: null });
  });

  test('has failed from a failed turn until a turn is done; a stopped turn is no failure', () => {
    const log = logOf(
      says('Go', ['ada']),
      starts('ada', 1, 1, [1]),
      ends('ada', 1, 'failed', [1], 'I was about'),
      {
        id: 'c:ada:1:retry',
        kind: 'command',
        to: ['ada'],
        body: { command: 'retry', agent: 'ada', turn: 'c:ada:1' },
      },
      starts('ada', 2, 4, [4]),
      ends('ada', 2, 'done', [4]),
      starts('ada', 3, 6, []),
      ends('ada', 3, 'aborted', []),
    );
    expect(conditions(folded(log.slice(0, 3)))).toEqual({ ada: 'failed idle' });
    expect(folded(log.slice(0, 4))).toMatchObject({
      agents: { ada: { condition: 'failed', pending: [4], problem: { code: 'provider_failed', seq: 3 } } },
      turns: [{ status: 'failed', retried: 4, said: 'I was about', error: { seq: 3 } }],
    });
    expect(conditions(folded(log.slice(0, 5)))).toEqual({ ada: 'running working' });
    expect(folded(log.slice(0, 5)).turns[1]).toMatchObject({
      inputs: [4],
      trigger: { name: 'Ana', text: 'retry' },
    });
    expect(conditions(folded(log.slice(0, 6)))).toEqual({ ada: 'idle idle' });
    expect(folded(log)).toMatchObject({
      agents: { ada: { condition: 'idle', failed: 1, turns: 3 } },
      totals: { turns: 3, failed: 1, running: 0 },
    });
  });

  test('that fails during a turn has failed, and continues the turn when it is resumed', () => {
    const log = logOf(
      says('Go', ['ada']),
      starts('ada', 1, 1, [1]),
      failureOf('ada'),
      command('resume', 'ada'),
      ends('ada', 1, 'done', [1]),
    );
    expect(folded(log.slice(0, 3)).agents['ada']).toMatchObject({
      condition: 'failed',
      state: 'failed',
      turn: 'c:ada:1',
      problem: { code: 'actor_corrupt', seq: 3 },
    });
    expect(conditions(folded(log.slice(0, 4)))).toEqual({ ada: 'running working' });
    expect(conditions(folded(log))).toEqual({ ada: 'idle idle' });
  });

  test('that has failed and is retried shows the state of the retried turn, not the failure', () => {
    const log = logOf(
      says('Go', ['ada']),
      starts('ada', 1, 1, [1]),
      ends('ada', 1, 'failed', [1]),
      failureOf('ada'),
      { kind: 'command', to: ['ada'], body: { command: 'retry', agent: 'ada', turn: 'c:ada:1' } },
      starts('ada', 2, 5, [5]),
      ends('ada', 2, 'done', [5]),
    );
    const after = (events: number) => conditions(folded(log.slice(0, events)))['ada'];
    expect([4, 5, 6, 7].map(after)).toEqual(['failed failed', 'idle idle', 'running working', 'idle idle']);
    expect(folded(log.slice(0, 6)).agents['ada']).toMatchObject({ parked: null, problem: null });
  });

  test('that is retired stays so when a failure is reported; an available or paused agent has failed', () => {
    const log = logOf(
      says('Go', ['ada', 'bob', 'cyd']),
      command('retire', 'bob'),
      command('pause', 'cyd'),
      failureOf('ada'),
      failureOf('bob'),
      failureOf('cyd'),
    );
    expect(conditions(folded(log))).toEqual({
      ada: 'failed failed',
      bob: 'retired retired',
      cyd: 'failed failed',
    });
    expect(folded(log).agents).toMatchObject({ ada: { problem: { seq: 4 } }, bob: { problem: null } });
  });

  test('is not affected by another error, nor by a failure notice that the runtime did not write', () => {
    const refused = { ...failureOf('ada'), id: 'refused:123' };
    const claimed = { ...failureOf('ada'), author: ANA };
    expect(folded(logOf(refused, claimed)).agents).toEqual({});
  });

  test('that is paused or retired during a turn is so after the turn', () => {
    const log = logOf(
      says('Go', ['ada', 'bob']),
      starts('ada', 1, 1, [1]),
      starts('bob', 1, 1, [1]),
      command('pause', 'ada'),
      command('retire', 'bob'),
      ends('ada', 1, 'done', [1]),
      ends('bob', 1, 'done', [1]),
      command('resume', 'ada'),
      command('recall', 'bob'),
    );
    expect(conditions(folded(log.slice(0, 5)))).toEqual({ ada: 'running working', bob: 'running working' });
    expect(conditions(folded(log.slice(0, 7)))).toEqual({ ada: 'paused paused', bob: 'retired retired' });
    expect(conditions(folded(log))).toEqual({ ada: 'idle idle', bob: 'idle idle' });
  });

  test('that has left or is blocked is back after a message without words that addresses it', () => {
    const log = logOf(
      left('ada'),
      left('bob', true),
      says('', ['ada', 'bob'], agent('cyd')),
      says('', ['ada', 'bob']),
    );
    expect(conditions(folded(log.slice(0, 3)))).toMatchObject({ ada: 'left left', bob: 'left blocked' });
    expect(folded(log).agents).toMatchObject({
      ada: { condition: 'idle', away: null, pending: [] },
      bob: { condition: 'idle', away: null, pending: [] },
    });
  });

  test('that has left or is blocked hears only people, whose message brings it back', () => {
    const log = logOf(
      says('Hello', ['ada']),
      left('ada'),
      says('psst', ['ada'], agent('bob')),
      says('Come back', ['ada']),
      left('ada', true),
      {
        kind: 'membership.changed',
        author: SYSTEM,
        body: { change: 'joined', agent: 'ada', policy: 'full' },
      },
    );
    expect(folded(log.slice(0, 3)).agents['ada']).toMatchObject({
      condition: 'left',
      state: 'left',
      pending: [1],
    });
    expect(folded(log.slice(0, 4)).agents['ada']).toMatchObject({ condition: 'idle', pending: [1, 4] });
    expect(folded(log).agents['ada']).toMatchObject({ condition: 'left', state: 'blocked' });
    const unblocked = foldEvent(folded(log), {
      ...logOf({ kind: 'membership.changed', body: { change: 'joined', agent: 'ada', policy: 'full' } })[0],
      seq: 7,
    } as never);
    expect(conditions(unblocked)['ada']).toBe('idle idle');
  });

  test('that waits for a person and for an agent shows the person first', () => {
    const opened = {
      kind: 'delegation.opened',
      author: agent('ada'),
      body: {
        delegation: 'd-1',
        how: 'delegate',
        delegator: 'ada',
        assignee: 'bob',
        task: 'Look',
        home: 'c',
        thread: 'c--d-1',
        root: 'c',
        group: 'g',
        join: 'all',
        chain: ['ada'],
      },
    };
    const approval = {
      kind: 'approval.requested',
      author: agent('ada'),
      body: { request: 'a-1', tool: 'deploy', args: '{"to":"prod"}', argsHash: 'h1', by: [] },
    };
    const end = (kind: string, body: object) => ({ kind, to: ['ada'], body });
    const log = logOf(
      opened,
      asks('ada', 'q-1'),
      approval,
      end('approval.decided', { request: 'a-1', outcome: 'approved', note: '' }),
      end('question.answered', { question: 'q-1', outcome: 'answered', content: 'a' }),
      end('delegation.ended', { delegation: 'd-1', outcome: 'done', result: 'seen' }),
      end('question.answered', { question: 'q-1', outcome: 'cancelled', content: 'late' }),
    );
    const after = (events: number) => conditions(folded(log.slice(0, events)))['ada'];
    expect([1, 2, 3, 4, 5, 6].map(after)).toEqual([
      'held waiting.delegation',
      'waiting waiting.answer',
      'waiting waiting.approval',
      'waiting waiting.answer',
      'held waiting.delegation',
      'idle idle',
    ]);
    const { tasks, agents, arrows } = folded(log);
    expect(tasks).toMatchObject([
      { id: 'd-1', kind: 'delegation', assignee: 'bob', thread: 'c--d-1', outcome: 'done', text: 'Look' },
      { id: 'q-1', kind: 'question', choices: ['a', 'b'], outcome: 'answered' },
      { id: 'a-1', kind: 'approval', text: 'deploy {"to":"prod"}', argsHash: 'h1', outcome: 'approved' },
    ]);
    expect(agents['ada']?.pending).toEqual([4, 5, 6, 7]);
    expect(arrows.map(({ seq, from, to }) => [seq, from, to])).toEqual([
      [4, 'Ana', ['ada']],
      [5, 'Ana', ['ada']],
      [6, 'Ana', ['ada']],
      [7, 'Ana', ['ada']],
    ]);
  });

  test('has its task pending in the thread, where no task is listed', () => {
    const body = {
      delegation: 'd-1',
      thread: 'c',
      home: 'h',
      delegator: 'bob',
      assignee: 'ada',
      task: 'Look',
    };
    const thread = folded(logOf({ kind: 'delegation.opened', author: agent('bob'), to: ['ada'], body }));
    expect(thread.tasks).toEqual([]);
    expect(thread.agents['ada']).toMatchObject({ condition: 'idle', pending: [1] });
    expect(thread.arrows).toMatchObject([{ from: 'bob', isAgent: true, to: ['ada'] }]);
  });

  test('is at rest in a fork, where earlier events are not pending', () => {
    const from = { conversation: 'original', seq: 4 };
    const log = logOf(
      says('Go', ['ada', 'bob', 'cyd']),
      command('pause', 'ada'),
      failureOf('bob'),
      command('retire', 'cyd'),
      { kind: 'command', body: { command: 'fork', from } },
    );
    expect(conditions(folded(log))).toEqual({ ada: 'idle idle', bob: 'idle idle', cyd: 'retired retired' });
    expect(folded(log)).toMatchObject({ origin: from, forks: [], agents: { ada: { pending: [] } } });
    const fork = { conversation: 'copy', seq: 1 };
    expect(folded(logOf({ kind: 'command', body: { command: 'fork', fork } }))).toMatchObject({
      origin: null,
      forks: [fork],
    });
  });
});

test('the most urgent agents come first', () => {
  const log = logOf(
    says('Go', ['queued', 'runs', 'failed', 'paused', 'gone', 'retired']),
    starts('runs', 1, 1, [1]),
    failureOf('failed'),
    command('pause', 'paused'),
    left('gone'),
    command('retire', 'retired'),
    asks('waits', 'q-1'),
  );
  expect(needOrder(Object.values(folded(log).agents)).map(({ id }) => id)).toEqual([
    'failed',
    'waits',
    'runs',
    'queued',
    'paused',
    'retired',
    'gone',
  ]);
});

test('a conversation has its latest mode, phase and archive state', () => {
  const log = logOf(
    { kind: 'mode.changed', body: { mode: 'chat' } },
    { kind: 'phase.changed', body: { phase: 'review', instructions: '' } },
    { kind: 'command', body: { command: 'archive' } },
  );
  expect(newProjection('c')).toMatchObject({ mode: 'agent', phase: null, archived: false, seq: 0 });
  expect(folded(log)).toMatchObject({ mode: 'chat', phase: 'review', archived: true, seq: 3 });
  const again = logOf(
    { kind: 'command', body: { command: 'archive' } },
    { kind: 'command', body: { command: 'reopen' } },
  );
  expect(folded(again).archived).toBe(false);
});
