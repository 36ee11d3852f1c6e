import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AgentInput } from '../../../src/library/config/agent-input.ts';
import type { TroupeInput } from '../../../src/library/config/agents-file.ts';
import { prepareCompany } from '../src/company.ts';
import {
  type ConversationRun,
  minutesPass,
  person,
  playConversation,
  readRun,
  type UserMove,
} from '../src/index.ts';
import { openCompany, playUsers } from '../src/play-conversation.ts';
import { recordTest } from '../src/record-test.ts';
import { Recording } from '../src/recording.ts';
import { scriptedUser } from '../src/users.ts';

const CONVERSATION = 'told';
const mia = person('mia');
const AT_NINE = {
  name: 'morning',
  cron: '0 9 * * 1-5',
  timezone: 'Europe/Berlin',
  conversation: CONVERSATION,
  to: 'desk',
  content: 'What is open?',
};
/** A Friday, ten minutes before nine in Berlin. */
const FRIDAY = Date.UTC(2026, 10, 27, 7, 50, 20);
const RULES = [{ when: { contains: 'What is open?' }, reply: 'Two parcels are.' }, { reply: 'Yes.' }];

function company(schedules: object[], agent: Partial<AgentInput> = {}): TroupeInput {
  const desk = { id: 'desk', provider: 'scripted', script: { rules: RULES }, ...agent };
  return { agents: [desk], defaults: { respondWhenUnaddressed: 'desk' }, schedules } as TroupeInput;
}

/** The same company, whose models cannot be reached. */
function offline(schedules: object[], agent: Partial<AgentInput> = {}): TroupeInput {
  const model = { provider: 'anthropic', model: 'claude-sonnet-5', script: undefined };
  return company(schedules, { ...agent, ...model } as Partial<AgentInput>);
}

/** A conversation that took place at that time. */
async function told(definition: TroupeInput, startsAt: number, moves: UserMove[]): Promise<ConversationRun> {
  const prepared = await prepareCompany(definition, {});
  await using opened = await openCompany(prepared, {}, { startsAt });
  const { troupe, clock } = opened;
  const user = scriptedUser(moves)({ seed: 1, conversation: CONVERSATION, troupe: undefined });
  const ended = await playUsers(troupe, [user], { conversation: CONVERSATION, clock, mostMoves: 200 });
  expect(ended).toEqual({ kind: 'done' });
  return await readRun(troupe, CONVERSATION);
}

/** Ids tell the minute of a schedule. */
const messagesOf = ({ events }: ConversationRun) =>
  events.flatMap(({ id, kind, author, body }) =>
    kind === 'message' ? [`${author.kind === 'system' ? id : author.id}: ${body.content}`] : [],
  );

test('minutes pass until the schedule sends its message, at the time at which it did', async () => {
  const people = [
    mia.says('Hello.'),
    minutesPass(5),
    mia.says('Are you there?'),
    minutesPass(10),
    mia.says('Thank you.'),
  ];
  const stored = await told(company([AT_NINE]), FRIDAY, people);
  const made = await recordTest(stored, offline([AT_NINE]));
  expect(
    made.moves.map((move) => ('content' in move ? move.content : 'minutes' in move && move.minutes)),
  ).toEqual(['Hello.', 5, 'Are you there?', 5, 5, 'Thank you.']);
  const recording = Recording.parse(JSON.parse(JSON.stringify(made.recording)));
  const again = await playConversation(offline([AT_NINE]), made.moves, { recording });
  expect(messagesOf(again)).toEqual(messagesOf(stored));
  const due = Date.UTC(2026, 10, 27, 8) / 60_000;
  expect(messagesOf(again)).toContain(`schedule:morning:${due}: What is open?`);
  expect(again).toHaveSaid('desk', 'Two parcels are.');
});

test('a conversation that a schedule began, and in which nobody spoke, is played again', async () => {
  const stored = await told(company([AT_NINE]), FRIDAY, [minutesPass(4 * 24 * 60)]);
  const made = await recordTest(stored, offline([AT_NINE]));
  expect(made.run.turns).toHaveLength(2);
  expect(messagesOf(made.run)).toEqual(messagesOf(stored));
});

test('who spoke before the message of a schedule, which was late, speaks before it', async () => {
  const people = [mia.says('Hello.'), minutesPass(9), mia.says('Is it nine?'), minutesPass(1)];
  const played = await told(company([AT_NINE]), FRIDAY, people);
  const late = new Map([
    ['Is it nine?', FRIDAY + 610_000],
    ['What is open?', FRIDAY + 630_000],
  ]);
  const events = played.events.map((event) => {
    const at = event.kind === 'message' ? late.get(event.body.content) : undefined;
    return { ...event, at: at ?? event.at };
  });
  const made = await recordTest({ ...played, events }, offline([AT_NINE]));
  expect(messagesOf(made.run)).toEqual(messagesOf(played));
});

test.each([
  ['has no such schedule', [], 'the agents file has no schedule "morning", which sent a message in it'],
  [
    'sends it at another time',
    [{ ...AT_NINE, cron: '30 9 * * *' }],
    'the schedule morning sends its message of 2026-11-27T08:00:00.000Z then, and does not in the test',
  ],
  [
    'sends more',
    [AT_NINE, { ...AT_NINE, name: 'often', cron: '*/5 * * * *' }],
    'the schedule often sends its message of 2026-11-27T07:55:00.000Z in the test, and did not then',
  ],
])('a company that %s is refused, and the schedule is named', async (_, schedules, why) => {
  const stored = await told(company([AT_NINE]), FRIDAY, [mia.says('Hello.'), minutesPass(15)]);
  await expect(recordTest(stored, offline(schedules))).rejects.toThrow(
    `told cannot be played again as a test: ${why}`,
  );
});

test('a reminder at a time of day comes in the test too', async () => {
  const calls = [{ name: 'remind', args: { text: 'call Mia', at: '2026-11-27T08:05:00Z' } }];
  const rules = [
    { when: { contains: 'call Mia' }, reply: 'It is time to call.' },
    { when: { step: 1 }, calls },
    { reply: 'I shall.' },
  ];
  const agent = { tools: ['remind'], script: { rules } } as Partial<AgentInput>;
  const stored = await told(company([], agent), FRIDAY, [mia.says('Call me at nine.'), minutesPass(20)]);
  const made = await recordTest(stored, offline([], { tools: ['remind'] }));
  const again = await playConversation(offline([], { tools: ['remind'] }), made.moves, made);
  expect(again).toHaveSaid('desk', 'It is time to call.');
});

test('whenever a conversation began and however people paused, schedules send what they sent', async () => {
  const pauses = fc.array(fc.integer({ min: 0, max: 25 }), { minLength: 1, maxLength: 5 });
  const often = { ...AT_NINE, cron: '*/7 * * * *', timezone: undefined };
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 86_400_000 }), pauses, async (offset, minutes) => {
      const people = minutes.flatMap((pause, at) => [mia.says(`Word ${at}.`), minutesPass(pause)]);
      const stored = await told(company([often]), FRIDAY + offset, people);
      const made = await recordTest(stored, offline([often]));
      expect(messagesOf(made.run)).toEqual(messagesOf(stored));
    }),
    { numRuns: 15 },
  );
});
