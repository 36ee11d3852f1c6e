import * as z from 'zod';
import { beforeAll, expect, test } from 'vitest';
import {
  answered,
  asked,
  askedApproval,
  called,
  type ConversationRun,
  decided,
  delegated,
  handedOver,
  minutesPass,
  person,
  playConversation,
  said,
  scriptedUser,
  simulatedUser,
  takenBy,
  told,
  woken,
} from '../src/index.ts';
import { Refund, support } from './support-company.ts';

const [mia, dana] = [person('mia'), person('dana')];
let run: ConversationRun;

beforeAll(async () => {
  const script = scriptedUser([
    mia.says('It costs more than you promised.'),
    minutesPass(31),
    dana.answers('refund it'),
    dana.approves('refund', { note: 'Gladly.' }),
    mia.says('Thank you.', { to: ['desk'] }),
  ]);
  const model = { rules: [{ reply: '{"move":"leave","text":"I have agreed."}' }] };
  const simulated = simulatedUser({ person: dana, goal: 'Decide.', model });
  run = await playConversation(support, { users: [script, simulated] });
});

/** Matchers of something that happened, each beside a variant with one difference: it must distinguish them. */
const TOLD_APART: [name: string, holds: () => void, isOtherwise: () => void][] = [
  ['who is woken', () => expect(run).toHaveWoken('billing'), () => expect(run).toHaveWoken('nobody')],
  [
    'who wakes',
    () => expect(run).toHaveWoken('billing', { by: 'desk', with: 'A refund?' }),
    () => expect(run).toHaveWoken('billing', { by: 'mia', with: 'A refund?' }),
  ],
  [
    'with what somebody is woken',
    () => expect(run).toHaveWoken('desk', { with: /costs more/ }),
    () => expect(run).toHaveWoken('desk', { with: /costs less/ }),
  ],
  [
    'who answers whom',
    () => expect(run).toHaveAnswered('billing', 'mia', 'on its way'),
    () => expect(run).toHaveAnswered('desk', 'dana'),
  ],
  [
    'who says what',
    () => expect(run).toHaveSaid('desk', 'You are welcome'),
    () => expect(run).toHaveSaid('billing', 'You are welcome'),
  ],
  [
    'what people say',
    () => expect(run).toHaveSaid('Dana', /^Gladly/),
    () => expect(run).toHaveSaid('mia', /^Gladly/),
  ],
  [
    'what a model is sent',
    () => expect(run).toHaveBeenTold('clerk', 'Look invoices up.'),
    () => expect(run).toHaveBeenTold('desk', 'Look invoices up.'),
  ],
  [
    'which tools a model is offered',
    () => expect(run).toHaveBeenTold('billing', 'refund: Refunds money'),
    () => expect(run).toHaveBeenTold('clerk', 'refund: Refunds money'),
  ],
  [
    'who hands over',
    () => expect(run).toHaveHandedOver('desk', 'billing', /refund/),
    () => expect(run).toHaveHandedOver('billing', 'desk'),
  ],
  [
    'who delegates',
    () => expect(run).toHaveDelegated('billing', 'clerk', '4711', { times: 1 }),
    () => expect(run).toHaveDelegated('billing', 'clerk', '4711', { times: 2 }),
  ],
  [
    'arguments',
    () => expect(run).toHaveCalled('billing', 'refund', { euros: 90, why: /promise/ }),
    () => expect(run).toHaveCalled('billing', 'refund', { euros: 9 }),
  ],
  [
    'arguments by schema',
    () => expect(run).toHaveCalled('billing', 'refund', Refund),
    () => expect(run).toHaveCalled('billing', 'refund', Refund.extend({ euros: z.number().max(50) })),
  ],
  [
    'arguments by a matcher of the runner',
    () => expect(run).toHaveCalled('billing', 'refund', { euros: expect.any(Number) as number }),
    () => expect(run).toHaveCalled('billing', 'refund', { euros: expect.any(String) as string }),
  ],
  [
    'a tool by its whole name',
    () => expect(run).toHaveCalled('clerk', 'look_up'),
    () => expect(run).toHaveCalled('clerk', 'look'),
  ],
  [
    'the result of a call that waited for a person',
    () => expect(run).toHaveCalled('billing', 'refund', undefined, { result: 'refunded 90', times: 1 }),
    () => expect(run).toHaveCalled('billing', 'refund', undefined, { outcome: 'failed' }),
  ],
  [
    'in which turn',
    () => expect(run).toHaveSaid('desk', 'You are welcome', { turn: 2 }),
    () => expect(run).toHaveSaid('desk', 'You are welcome', { turn: 1 }),
  ],
  [
    'who is asked, with which choices',
    () => expect(run).toHaveAsked('billing', 'dana', 'Refund', { choices: ['refund nothing'] }),
    () => expect(run).toHaveAsked('billing', 'dana', 'Refund', { choices: ['refund all'] }),
  ],
  [
    'who may answer',
    () => expect(run).toHaveAsked('billing', /dana/),
    () => expect(run).toHaveAsked('billing', 'mia'),
  ],
  [
    'which approval is asked for',
    () => expect(run).toHaveAskedApproval('billing', 'dana', 'refund', { euros: 90 }),
    () => expect(run).toHaveAskedApproval('billing', 'dana', 'refund', { euros: 91 }),
  ],
  [
    'who may approve',
    () => expect(run).toHaveAskedApproval(/billing/, 'dana', /^ref/),
    () => expect(run).toHaveAskedApproval('billing', 'mia', 'refund'),
  ],
  [
    'who has reached the goal',
    () => expect(run).toHaveReachedGoal('dana', /agreed/),
    () => expect(run).toHaveReachedGoal('mia'),
  ],
  [
    'the order',
    () => expect(run).toHaveHappenedInOrder([woken('desk'), handedOver('desk', 'billing'), woken('clerk')]),
    () => expect(run).toHaveHappenedInOrder([woken('clerk'), handedOver('desk', 'billing')]),
  ],
  [
    'within how many turns',
    () => expect(run).toHaveHappenedInOrder([said('mia', 'costs'), asked('billing', 'dana')], { turns: 4 }),
    () => expect(run).toHaveHappenedInOrder([said('mia', 'costs'), asked('billing', 'dana')], { turns: 3 }),
  ],
  [
    'turns',
    () => expect(run).toHaveTakenAtMost({ turns: 7 }),
    () => expect(run).toHaveTakenAtMost({ turns: 6 }),
  ],
  [
    'steps',
    () => expect(run).toHaveTakenAtMost({ steps: 12 }),
    () => expect(run).toHaveTakenAtMost({ steps: 5 }),
  ],
  [
    'calls',
    () => expect(run).toHaveTakenAtMost({ calls: 5 }),
    () => expect(run).toHaveTakenAtMost({ calls: 4 }),
  ],
  [
    'tokens',
    () => expect(run).toHaveTakenAtMost({ tokens: 9e4 }),
    () => expect(run).toHaveTakenAtMost({ tokens: 9 }),
  ],
  [
    'minutes',
    () => expect(run).toHaveTakenAtMost({ minutes: 31 }),
    () => expect(run).toHaveTakenAtMost({ minutes: 30.9 }),
  ],
];

test.each(TOLD_APART)('%s: what happened passes, and what did not fails', (_, holds, isOtherwise) => {
  holds();
  expect(isOtherwise).toThrow(/^expected /);
});

test('a whole conversation in one order, across threads and people', () => {
  expect(run).toHaveHappenedInOrder([
    woken('desk', { by: 'mia' }),
    handedOver('desk', 'billing'),
    told('billing', 'A refund?'),
    delegated('billing', 'clerk', '4711'),
    called('clerk', 'look_up', { invoice: '4711' }),
    answered('clerk', 'billing', '90 euros'),
    asked('billing', 'dana', 'Refund 90 euros?', ['refund it']),
    said('dana', 'refund it'),
    askedApproval('billing', 'dana', 'refund'),
    decided('dana', 'approved'),
    answered('billing', 'dana', 'on its way'),
    said('desk', 'You are welcome.'),
  ]);
});

test('a failure names what was looked for, and shows what comes closest, in threads too', () => {
  const other = () => expect(run).toHaveCalled('clerk', 'look_up', { invoice: '4712' });
  expect(other).toThrow('expected that clerk calls look_up { invoice: "4712" }.');
  expect(other).toThrow(
    / {2}> #\d+ in conversation\.d-\w+ @clerk \[tool\.result\] look_up done: invoice 4711: 90 euros/,
  );
});

test('a failure of an order names the moment and what it should follow', () => {
  const moments = [said('dana', 'refund it'), asked('billing', 'dana')];
  expect(() => expect(run).toHaveHappenedInOrder(moments)).toThrow(
    'expected that billing asks dana, after dana says "refund it". It happened earlier only.',
  );
});

test('what was not to happen is shown where it did', () => {
  expect(() => expect(run).not.toHaveSaid(/./, /on its way/)).toThrow(
    /expected that not: .*\n\n.*\(> is it\):[^]*> #\d+ @billing \[message\] It is on its way back to you\./,
  );
});

test('a failure is short, whatever the length of the log', async () => {
  const long = await playConversation(
    support,
    Array.from({ length: 60 }, (_, at) => mia.says(`Hello ${at}`)),
  );
  const error = await Promise.reject(new Error()).catch(() => {
    try {
      expect(long).toHaveSaid('desk', 'nothing of the kind');
    } catch (thrown) {
      return thrown as Error;
    }
  });
  expect(error?.message.split('\n').length).toBeLessThan(35);
  expect(error?.message).toMatch(/… \d+ more/);
});

test('bounds say what was taken', () => {
  expect(takenBy(run)).toMatchObject({ turns: 7, calls: 5, minutes: 31, dollars: null });
  expect(() => expect(run).toHaveTakenAtMost({ turns: 3, dollars: 1 })).toThrow(
    'it took 7 turns, at most 3; an unknown number of dollars, at most 1',
  );
});

test('a matcher refuses what is no run', () => {
  expect(() => expect('a text').toBeSound()).toThrow('toBeSound takes a run');
});
