import { expect, test } from 'vitest';
import { createFakeSessions, newSessionMemory } from '../../packages/testing/src/fake-sessions.ts';
import { decide, mailer, requestIn } from '../support/approvals.ts';
import { asks, modelOf, says } from '../support/engine-models.ts';
import { openStage, type Stage, type StageOptions } from '../support/engine-stage.ts';

type Calls = Parameters<typeof asks>;

/** Bo, whose model keeps sessions and whose second turn ends with these calls, and Cy, who hands over or answers. */
async function open(calls: Calls, { cy = says('mine now'), ...more }: Setting = {}) {
  const memory = newSessionMemory();
  const bo = createFakeSessions({
    memory,
    answer: (request, signal) =>
      modelOf(async function* ({ trace }) {
        yield* trace.turn === 'c:bo:2' && trace.step === 1 ? asks(...calls) : says('ok');
      }).stream(request, { signal }),
  });
  const other = modelOf(async function* ({ trace }) {
    yield* trace.step === 1 ? cy : says('mine now');
  });
  const { sent: mailed, mail } = mailer();
  const stage = await openStage({
    agents: [
      { id: 'bo', model: bo, tools: ['handoff', 'mail', 'ask'] },
      { id: 'cy', model: other, tools: ['handoff'] },
    ],
    tools: [mail],
    ...more,
  });
  await ask(stage, 'word-one');
  await ask(stage, 'word-two');
  return { stage, memory, mailed };
}

interface Setting extends Partial<StageOptions> {
  cy?: ReturnType<typeof says>;
}

async function ask(stage: Stage, content: string): Promise<void> {
  await stage.say('c', content, ['bo']);
  await stage.quiet();
}

const HANDOFF = ['handoff', { to: 'cy', goal: 'go on' }] as [string, object];

/** What was sent last, by role, and how often its whole session now has a text. */
function last({ seen }: ReturnType<typeof newSessionMemory>) {
  const { change, sent = [], transcript = [] } = seen.at(-1) ?? {};
  return {
    change,
    roles: sent.map(({ role }) => role),
    sent: sent.map(({ content }) => content).join('\n'),
    times: (text: string) => transcript.join('\n').split(text).length - 1,
  };
}

test('after a handoff a session gets its calls with their results and what followed, not its whole last turn', async () => {
  const { stage, memory } = await open([HANDOFF]);
  await ask(stage, 'word-three');
  const { change, roles, sent, times } = last(memory);
  expect(change).toBe('resumed');
  expect(roles).toEqual(['assistant', 'tool', 'user', 'user']);
  expect(sent).not.toContain('word-two');
  expect(sent).toContain('mine now');
  expect(['word-one', 'word-two', 'word-three', '[called handoff]'].map(times)).toEqual([1, 1, 1, 1]);
  expect(await stage.check('c')).toEqual([]);
});

test('a handoff beside another call that waits for an approval is the same, with both results', async () => {
  const { stage, memory, mailed } = await open([['mail', { to: 'eve' }], HANDOFF]);
  await ask(stage, 'word-three');
  const { change, roles, sent, times } = last(memory);
  expect(change).toBe('resumed');
  expect(roles).toEqual(['assistant', 'tool', 'tool', 'user', 'user']);
  expect(sent).toContain('not run yet');
  expect(mailed).toEqual([]);
  expect(['word-two', 'word-three', '[called mail]'].map(times)).toEqual([1, 1, 1]);
});

test('a session that waited for an approval is told what was decided and done, once', async () => {
  const { stage, memory, mailed } = await open([['mail', { to: 'eve' }]]);
  await decide(stage.troupe, await requestIn(stage.troupe), true, { note: 'fine by me' });
  await stage.quiet();
  const { change, sent, times } = last(memory);
  expect(mailed).toEqual(['eve']);
  expect(change).toBe('resumed');
  expect(sent).not.toContain('word-two');
  expect(sent).toContain('sent to eve');
  expect(['word-two', 'sent to eve', 'fine by me'].map(times)).toEqual([1, 1, 1]);
  expect(await stage.check('c')).toEqual([]);
});

test('an agent to whom a conversation is handed back gets what it missed', async () => {
  const { stage, memory } = await open([HANDOFF], {
    cy: asks(['handoff', { to: 'bo', goal: 'yours again' }]),
  });
  const { change, roles, sent, times } = last(memory);
  expect(change).toBe('resumed');
  expect(roles).toEqual(['assistant', 'tool', 'user']);
  expect(sent).toContain('yours again');
  expect(sent).not.toContain('word-two');
  expect(['word-two', 'yours again'].map(times)).toEqual([1, 1]);
  expect(await stage.check('c')).toEqual([]);
});

test('the first turn of a session may end so, and each prompt is shown as it was sent', async () => {
  const memory = newSessionMemory();
  const model = createFakeSessions({
    memory,
    answer: (request, signal) =>
      modelOf(async function* ({ trace }) {
        yield* trace.turn === 'c:bo:1' && trace.step === 1 ? asks(HANDOFF) : says('ok');
      }).stream(request, { signal }),
  });
  const stage = await openStage({
    agents: [
      { id: 'bo', model, tools: ['handoff'] },
      {
        id: 'cy',
        model: modelOf(async function* () {
          yield* says('mine now');
        }),
      },
    ],
  });
  await ask(stage, 'word-one');
  const next = await stage.troupe.prompt('c', 'bo');
  expect(next.mode).toBe('delta');
  await ask(stage, 'word-two');
  expect(memory.seen.map(({ change }) => change)).toEqual(['started', 'resumed']);
  const { sent, roles } = last(memory);
  expect(sent).not.toContain('word-one');
  const past = await stage.troupe.promptOf('c:bo:2');
  expect(past).toMatchObject({ mode: 'delta', verified: true });
  expect(past.messages.map(({ role }) => role)).toEqual(roles);
});
