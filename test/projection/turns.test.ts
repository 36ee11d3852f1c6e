import { describe, expect, test } from 'vitest';
import { rowOf } from '../../src/library/projection/row.ts';
import { agent, ends, folded, logOf, says, starts } from './logs.ts';

const own = (kind: string, body: object, turn = 'c:ada:1') => ({ kind, author: agent('ada'), turn, body });
const calls = (...ids: string[]) => ids.map((id) => ({ id, name: `tool_${id}`, args: '{}' }));
const note = (agentId: string, phase: string, more: object = {}) => ({
  kind: 'compaction.progress',
  author: agent(agentId),
  turn: `c:${agentId}:1`,
  body: {
    phase,
    agent: agentId,
    attempt: 1,
    step: 1,
    reason: 'over_budget',
    tokens: { before: 1_000, after: null },
    ...more,
  },
});

describe('a turn', () => {
  test('has its trigger and the messages that its agent had missed', () => {
    const log = logOf(
      says('Hello, ada', ['ada']),
      starts('ada', 1, 1, [1]),
      says('One', [], agent('bob')),
      says('mine', [], agent('ada')),
      ends('ada', 1, 'done', [1]),
      says('Two'),
      says('What do you say?', ['ada']),
      says('too late'),
      starts('ada', 2, 7, [7]),
    );
    const [first, second] = folded(log).turns;
    expect(first).toMatchObject({ missed: null, trigger: { name: 'Ana', text: 'Hello, ada' }, number: 1 });
    expect(second).toMatchObject({
      number: 2,
      from: 9,
      missed: { count: 2, first: 3, last: 6 },
      trigger: { name: 'Ana', text: 'What do you say?' },
    });
  });

  test('has missed nothing if its agent has joined with a fresh view', () => {
    const log = (join: string) =>
      logOf(says('Before'), says('You', ['ada']), starts('ada', 1, 2, [2], { join: join as never }));
    expect(folded(log('fresh')).turns[0]?.missed).toBeNull();
    expect(folded(log('full')).turns[0]?.missed).toMatchObject({ count: 1 });
  });

  test('has its steps, and its calls with their outcomes', () => {
    const log = logOf(
      says('Go', ['ada']),
      starts('ada', 1, 1, [1]),
      own('tool.result', { call: 'approved', name: 'deploy', outcome: 'done', content: 'ok' }),
      own('step', { index: 0, content: 'Let me look.', calls: calls('a', 'b') }),
      own('tool.result', { call: 'a', name: 'tool_a', outcome: 'failed', content: 'no' }),
      own('turn.steered', { step: 1, upTo: 5, inputs: [5] }),
      own('message', { content: 'Here it is.' }),
      {
        ...own('handoff', {
          summary: {
            goal: 'go on',
            done: '',
            state: '',
            next: '',
            openQuestions: [],
            artifacts: [],
            why: '',
          },
        }),
        to: ['bob'],
      },
      ends('ada', 1, 'done', [1, 5]),
    );
    expect(folded(log).turns).toMatchObject([
      {
        calls: [
          { call: 'approved', name: 'deploy', outcome: 'done', seq: 3 },
          { call: 'a', outcome: 'failed', seq: 4 },
          { call: 'b', outcome: null, seq: 4 },
        ],
        callCount: 3,
        inputs: [1, 5],
        upTo: 5,
        said: 'Here it is.',
        handoff: { to: ['bob'], seq: 8 },
        status: 'done',
        to: 9,
        tokens: { input: 100, cacheRead: 60 },
      },
    ]);
    expect(folded(log.slice(0, 6)).turns[0]).toMatchObject({
      steps: 1,
      status: 'running',
      said: 'Let me look.',
    });
    expect(folded(log).agents['bob']?.pending).toEqual([8]);
  });

  test('without an end counts as aborted when another one follows', () => {
    const log = logOf(starts('ada', 1, 0, []), starts('ada', 2, 1, []), ends('ada', 1, 'done', []));
    const { turns, totals, agents } = folded(log);
    expect(turns.map(({ status }) => status)).toEqual(['aborted', 'running']);
    expect(totals).toMatchObject({ turns: 2, running: 1, tokens: { input: 0 } });
    expect(agents['ada']?.turn).toBe('c:ada:2');
  });

  test('with an end and no start settles its inputs and is not counted', () => {
    const { turns, totals, agents } = folded(logOf(says('Go', ['ada']), ends('ada', 7, 'failed', [1])));
    expect([turns, totals.failed, agents['ada']?.pending]).toEqual([[], 0, []]);
    expect(agents['ada']?.condition).toBe('idle');
  });
});

describe('a compaction', () => {
  test('of one agent runs beside that of another', () => {
    const range = { from: 1, upTo: 5 };
    const summary = {
      id: 'compaction-1',
      kind: 'compaction',
      author: agent('ada'),
      turn: 'c:ada:1',
      body: {
        number: 1,
        upTo: 5,
        strategy: 'summary',
        reason: 'over_budget',
        by: 'ada',
        tokens: { before: 600, after: 100 },
        usage: { input: 700, output: 90, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
      },
    };
    const log = logOf(
      starts('ada', 1, 0, []),
      starts('bob', 1, 0, []),
      note('ada', 'started'),
      note('bob', 'started', { reason: 'overflow' }),
      note('ada', 'summarising', { strategy: 'summary', range }),
      note('bob', 'failed', { strategy: 'summary', message: 'the model refused' }),
      summary,
      note('bob', 'failed', { message: 'nothing more can be left out' }),
      note('ada', 'done', { strategy: 'summary', range, tokens: { before: 1_000, after: 400 } }),
      ends('ada', 1, 'done', []),
    );
    const middle = folded(log.slice(0, 6));
    expect(middle.compactions).toMatchObject([
      { agent: 'ada', phase: 'summarising', strategy: 'summary', range, endedAt: null },
      { agent: 'bob', phase: 'started', reason: 'overflow', message: 'the model refused', endedAt: null },
    ]);
    expect(middle.agents).toMatchObject({
      ada: { state: 'working.compacting' },
      bob: { state: 'working.compacting' },
    });
    const { compactions, totals, agents } = folded(log);
    expect(compactions).toMatchObject([
      {
        phase: 'done',
        seq: 3,
        reduced: 60,
        tokens: { before: 1_000, after: 400 },
        summary: 'compaction-1',
        summarySeq: 7,
      },
      { phase: 'failed', message: 'nothing more can be left out', reduced: null },
    ]);
    expect(totals).toMatchObject({ compactions: 1, tokens: { input: 100, output: 10 } });
    expect(agents).toMatchObject({ ada: { state: 'idle' }, bob: { state: 'working' } });
  });

  test('ends with its turn, and may consist of pruning alone', () => {
    const log = logOf(starts('ada', 1, 0, []), note('ada', 'started'), ends('ada', 1, 'aborted', []));
    expect(folded(log).compactions).toMatchObject([{ phase: 'failed', message: 'the turn ended first' }]);
    expect(folded(log).totals.compactions).toBe(0);
    const after = { tokens: { before: 1_000, after: 750 }, strategy: 'prune' };
    const pruned = folded(logOf(note('ada', 'started'), note('ada', 'pruned', after)));
    expect(pruned.compactions).toMatchObject([{ phase: 'pruned', reduced: 25, strategy: 'prune' }]);
    expect(pruned.totals.compactions).toBe(1);
  });

  test('that adopts the summary of another agent refers to it', () => {
    const summary = (by: string) => ({
      id: 'compaction-1',
      kind: 'compaction',
      author: agent(by),
      body: { number: 1, upTo: 5, strategy: 'summary', reason: 'join', by, tokens: { before: 9, after: 3 } },
    });
    const adopts = { compaction: 'compaction-1', upTo: 5, reason: 'over_budget', tokens: {} };
    const log = logOf(
      summary('bob'),
      note('ada', 'started'),
      { kind: 'baseline', author: agent('ada'), body: { epoch: 2, layers: [], reason: '', adopts } },
      note('ada', 'done', { strategy: 'adopt', tokens: { before: 1_000, after: 500 } }),
    );
    expect(folded(log).compactions).toMatchObject([
      { agent: 'bob', phase: 'done', reduced: 67, summarySeq: 1 },
      { agent: 'ada', phase: 'done', strategy: 'adopt', summary: 'compaction-1', summarySeq: 1, reduced: 50 },
    ]);
  });
});

test('events of a compaction are told in words', () => {
  const tokens = { before: 20_000, after: 900 };
  const [done, prune] = logOf(
    note('ada', 'done', { strategy: 'adopt', reason: 'cold_cache', tokens }),
    own('prune', { events: [3], reason: 'over_budget', tokens }),
  ).map((event) => rowOf(event).summary);
  expect(done).toBe(
    '@ada made room, a summary that another agent had made was adopted, as the cache had gone cold, so that a shorter prompt costs less: 20000 → 900 tokens',
  );
  expect(prune).toBe(
    '1 tool result shown as placeholders, as the prompt was above its trigger: 20000 → 900 tokens',
  );
});
