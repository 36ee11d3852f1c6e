import { expect, test } from 'vitest';
import { company, UMA } from '../support/company.ts';

test('A1 the opening message to an agent is all it sees, and there is no block', async () => {
  await using room = await company(['p']);
  await room.say(UMA, 'p', 'plan it');
  expect(room.sent('p')).toEqual(['user: plan it']);
});

test('A2 an agent that joins later sees everything before, attributed, and its trigger last', async () => {
  await using room = await company(['p', 'd']);
  await room.say(UMA, 'p', 'plan it');
  await room.say(UMA, 'd', 'draw it');
  expect(room.sent('d')).toEqual(['user: [Uma>@p] plan it', 'user: [@p] «p answers 1»', 'user: draw it']);
});

test('A2 an agent that joins fresh sees its trigger only', async () => {
  await using room = await company(['p', 'd'], { agents: { d: { join: 'fresh' } } });
  await room.say(UMA, 'p', 'plan it');
  await room.say(UMA, 'd', 'draw it');
  expect(room.sent('d')).toEqual(['user: draw it']);
});

test('A3 a human who continues with one agent gets user, assistant, user, and no block', async () => {
  await using room = await company(['p']);
  await room.say(UMA, 'p', 'one');
  await room.say(UMA, 'p', 'two');
  expect(room.sent('p')).toEqual(['user: one', 'assistant: p answers 1', 'user: two']);
});

test('A4 an opening message to two agents is the same bare message for both, without a block', async () => {
  const bothAsked = Promise.withResolvers<void>();
  let asked = 0;
  const answer = async () => {
    asked += 1;
    if (asked === 2) bothAsked.resolve();
    await bothAsked.promise;
    return { text: 'yes' };
  };
  await using room = await company(['p', 'd'], { answers: { p: answer, d: answer } });
  await room.say(UMA, ['p', 'd'], 'both of you');
  expect([room.sent('p'), room.sent('d')]).toEqual([['user: both of you'], ['user: both of you']]);
});

test('A5 a returning agent sees its own words, the block of missed messages, and the trigger', async () => {
  await using room = await company(['p', 'd']);
  await room.say(UMA, 'p', 'plan it');
  await room.say(UMA, 'd', 'draw it');
  await room.say(UMA, 'p', 'go on');
  expect(room.sent('p')).toEqual([
    'user: plan it',
    'assistant: p answers 1',
    'user: away{[Uma>@d] draw it -> d answers 1}',
    'user: go on',
  ]);
});

test('A6 the receiver of a handoff sees the summary first, then the request and text of the sender', async () => {
  await using room = await company(['p', 'd'], {
    agents: { p: { tools: ['handoff'] } },
    answers: {
      p: [
        {
          text: 'Over to d.',
          calls: [{ name: 'handoff', args: '{"to":"d","goal":"a drawing","next":"draw"}' }],
        },
      ],
    },
  });
  await room.say(UMA, 'p', 'I need a drawing');
  expect(room.requests('p')).toHaveLength(1);
  expect(room.sent('d')).toEqual([
    'user: [@p>@d] handed this conversation over to you: handoff{Goal: a drawing Next: draw}',
    'user: [Uma>@p] I need a drawing',
    'user: [@p] «Over to d.»',
  ]);
});

test('A7 a newcomer asked about the past sees the whole dialogue, then the question', async () => {
  await using room = await company(['p', 'd', 'c']);
  await room.say(UMA, 'p', 'plan it');
  await room.say(UMA, 'd', 'draw it');
  await room.say(UMA, 'c', 'what happened here?');
  expect(room.sent('c')).toEqual([
    'user: [Uma>@p] plan it',
    'user: [@p] «p answers 1»',
    'user: [Uma>@d] draw it',
    'user: [@d] «d answers 1»',
    'user: what happened here?',
  ]);
});

test('A8 without a trigger there is no turn', async () => {
  await using room = await company(['p', 'd']);
  await room.say(UMA, 'p', 'plan it');
  await room.say(UMA, null, 'just thinking aloud');
  expect(room.requests('d')).toHaveLength(0);
  expect(room.requests('p')).toHaveLength(1);
});

test('A9 the block names author and recipients of every line, in order', async () => {
  await using room = await company(['p', 'd', 'c']);
  await room.say(UMA, 'p', 'plan it');
  await room.say(UMA, ['d', 'c'], 'draw and check');
  await room.say(UMA, null, 'hm');
  await room.say(UMA, 'p', 'go on');
  const [block] = room.sent('p').filter((line) => line.includes('away{'));
  expect(block).toMatch(
    /^user: away\{\[Uma>@d, @c\] draw and check (?:\[@d\] d answers 1 \[@c\] c answers 1|\[@c\] c answers 1 \[@d\] d answers 1) \[Uma\] hm\}$/,
  );
});

test('A10 the trigger comes after the block and is not in it', async () => {
  await using room = await company(['p', 'd']);
  await room.say(UMA, 'p', 'one');
  await room.say(UMA, 'd', 'aside');
  await room.say(UMA, 'p', 'the trigger');
  const lines = room.sent('p');
  expect(lines.at(-1)).toBe('user: the trigger');
  expect(lines.filter((line) => line.includes('the trigger'))).toHaveLength(1);
});

test('A11 a repeated event has no second effect', async () => {
  await using room = await company(['p']);
  await room.say(UMA, 'p', 'once', { id: 'e1' });
  await room.say(UMA, 'p', 'once', { id: 'e1' });
  expect(room.requests('p')).toHaveLength(1);
});

test('A12 empty events are skipped', async () => {
  await using room = await company(['p']);
  await room.say(UMA, null, '   ');
  await room.say(UMA, 'p', '');
  expect(room.requests('p')).toHaveLength(0);
  await room.say(UMA, 'p', 'words');
  expect(room.sent('p')).toEqual(['user: words']);
});

test('A13 a handoff summary opens the block of a returning agent', async () => {
  await using room = await company(['p', 'd'], {
    agents: { d: { tools: ['handoff'] } },
    answers: { d: [{ calls: [{ name: 'handoff', args: '{"to":"p","goal":"finish"}' }] }] },
  });
  await room.say(UMA, 'p', 'plan it');
  await room.say(UMA, 'd', 'your turn');
  expect(room.sent('p')).toEqual([
    'user: plan it',
    'assistant: p answers 1',
    'user: [@d>@p] handed this conversation over to you: handoff{Goal: finish} away{[Uma>@d] your turn}',
  ]);
});

test('A14 a failed agent keeps its position: its next prompt shows everything it has not seen', async () => {
  await using room = await company(['p', 'd'], {
    answers: { p: ['first', { error: { code: 'provider_refused' } }] },
  });
  await room.say(UMA, 'p', 'one');
  await room.say(UMA, 'd', 'aside');
  await room.say(UMA, 'p', 'two');
  await room.say(UMA, 'd', 'more');
  await room.say(UMA, 'p', 'three');
  expect(room.sent('p')).toEqual([
    'user: one',
    'assistant: first',
    'user: away{[Uma>@d] aside -> d answers 1}',
    'user: two',
    // A reminder of the runtime, which is left out here.
    'user: ',
    'user: away{[Uma>@d] more -> d answers 2}',
    'user: three',
  ]);
  const told = room
    .raw('p')
    .filter((message) => JSON.stringify(message).includes('[this turn failed: provider_refused]'));
  expect(told.map(({ role }) => role)).toEqual(['user']);
});
