import { beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { checkConversation, type ConversationRun } from '../../rig/check-conversation.ts';
import { countConversation, noCounts } from '../../rig/count-conversation.ts';
import type { Post } from '../../rig/clients.ts';
import type { Execution } from '../../rig/fake-tools.ts';
import type { Event, EventOf } from '../../src/events/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { asks, byStep, says } from '../support/engine-models.ts';
import { openStage } from '../support/engine-stage.ts';

/** A good run: one message to bo, who looks, books and answers. The tests then falsify it in every way. */
let good: Omit<ConversationRun, 'posts' | 'executions' | 'cancelled'> & {
  posts: Post[];
  executions: Execution[];
  cancelled: string[];
};
const BOOKED = 'k1:bo:1/0.1';

beforeAll(async () => {
  const executions: Execution[] = [];
  const tool = (name: string, idempotent: boolean) =>
    defineTool({
      name,
      description: name,
      schema: z.object({}),
      idempotent,
      run: (_, { effect }) => {
        executions.push({ at: 1, tool: name, effect, process: 'p1' });
        return 'done';
      },
    });
  const stage = await openStage({
    tools: [tool('look', true), tool('book', false)],
    agents: [
      { id: 'bo', model: byStep(asks(['look', {}], ['book', {}]), says('booked')), tools: ['look', 'book'] },
    ],
  });
  await stage.say('k1', 'k1-m0: please', ['bo'], 'k1-m0');
  await stage.quiet();
  const post: Post = {
    conversation: 'k1',
    id: 'k1-m0',
    content: 'k1-m0: please',
    to: ['bo'],
    tries: 1,
    acked: { seq: 1, at: 1 },
  };
  good = {
    conversation: 'k1',
    events: await stage.events('k1'),
    actors: [await stage.actor('k1', 'bo')],
    corrupt: [],
    posts: [post],
    executions,
    cancelled: [],
  };
});

function resultOf(run: typeof good, name: string): EventOf<'tool.result'> {
  const found = run.events.find((event) => event.kind === 'tool.result' && event.body.name === name);
  return found as EventOf<'tool.result'>;
}

const again = (run: typeof good, tool: string) => {
  const execution = run.executions.find((each) => each.tool === tool) as Execution;
  run.executions.push({ ...execution, process: 'p2' });
};

test('a good run has no findings, and is counted', () => {
  expect(checkConversation(good)).toEqual([]);
  const counts = noCounts();
  countConversation(counts, good);
  expect(counts).toMatchObject({ triggers: 1, unanswered: 0, turns: 1, failed: 0, calls: 2, lost: 0 });
  expect(counts.answerMs).toHaveLength(1);
});

const FORGED: [string, (run: typeof good) => void, string, RegExp][] = [
  [
    'a tool called twice',
    (run) => again(run, 'book'),
    'I5',
    /k1:bo:1\/0\.1 was executed 2 times: by p1 at 1, p2/,
  ],
  [
    'an executed call that is missing in the log',
    (run) => void run.executions.push({ at: 2, tool: 'book', effect: 'k1:bo:1/1.0', process: 'p3' }),
    'I5',
    /k1:bo:1\/1\.0 was executed by p3 at 2, and the turn, which stands at turn\.done/,
  ],
  [
    'a call logged as done that never ran',
    (run) => void (run.executions = run.executions.filter(({ effect }) => effect !== BOOKED)),
    'I5',
    /k1:bo:1\/0\.1 is done in the log at \d+, and was never executed/,
  ],
  [
    'a missing acknowledged message',
    (run) => {
      const post = run.posts[0] as Post;
      run.posts.push({ ...post, id: 'k1-m9', acked: { seq: 99, at: 1 } });
    },
    'ack',
    /k1-m9, acknowledged as 99, is 0 times in the log/,
  ],
  [
    'a message stored with other content',
    (run) => void ((run.posts[0] as Post).content = 'something else'),
    'ack',
    /not in the log as it was sent/,
  ],
  [
    'a message at another seq than acknowledged',
    (run) => void ((run.posts[0] as Post).acked = { seq: 7, at: 1 }),
    'ack',
    /acknowledged as 7 and is at/,
  ],
  [
    'an unacknowledged message',
    (run) => void ((run.posts[0] as Post).acked = null),
    'ack',
    /never acknowledged/,
  ],
  [
    'a reply after an acknowledged cancel',
    (run) => void run.cancelled.push('k1:bo:1'),
    'I8',
    /was cancelled/,
  ],
  [
    'a missing answer',
    (run) => void (run.events = run.events.filter(({ kind }: Event) => kind !== 'turn.done')),
    'I2',
    /covered 0 times/,
  ],
  [
    'a turn that failed for another reason than its model',
    (run) => {
      const end = run.events.find(({ kind }) => kind === 'turn.done') as Event;
      const { covers } = (end as EventOf<'turn.done'>).body;
      const body = { covers, code: 'poison', message: 'started 6 times', partial: '' };
      Object.assign(end, { kind: 'turn.failed', body });
    },
    'turn',
    /k1:bo:1 failed: poison: started 6 times/,
  ],
  ['a record that cannot be read', (run) => void (run.corrupt = ['@bo: not JSON']), 'I6', /not JSON/],
];

test.each(FORGED)('%s is reported', (_, forge, invariant, problem) => {
  const run = structuredClone(good);
  forge(run);
  const found = checkConversation(run);
  expect(found.map((each) => each.invariant)).toContain(invariant);
  expect(found.map((each) => each.problem).join('\n')).toMatch(problem);
});

test('a call flagged as lost does not count as repeated or missing', () => {
  const run = structuredClone(good);
  resultOf(run, 'book').body.outcome = 'lost';
  expect(checkConversation(run)).toEqual([]);
  run.executions = run.executions.filter(({ effect }) => effect !== BOOKED);
  expect(checkConversation(run)).toEqual([]);
  const counts = noCounts();
  countConversation(counts, run);
  expect(counts.lost).toBe(1);
});

test('an idempotent tool may be executed again', () => {
  const run = structuredClone(good);
  again(run, 'look');
  expect(checkConversation(run)).toEqual([]);
});
