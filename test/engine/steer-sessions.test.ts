import { expect, test } from 'vitest';
import { createFakeSessions, newSessionMemory } from '../../packages/testing/src/fake-sessions.ts';
import { asks, modelOf, says } from '../support/engine-models.ts';
import { openStage, type Stage } from '../support/engine-stage.ts';
import { answered, meanwhile, post, sound } from '../support/steer-stage.ts';

/** A turn of one step, then a turn of two steps with a message in between. */
async function play(rewind: boolean) {
  const memory = newSessionMemory();
  const model = createFakeSessions({
    memory,
    rewind,
    answer: (request, signal) =>
      modelOf(async function* ({ trace }) {
        yield* trace.turn === 'c:bo:2' && trace.step === 1 ? asks(['look', {}]) : says('ok');
      }).stream(request, { signal }),
  });
  let stage: Stage | null = null;
  const tool = meanwhile(async () => stage && post(stage, 'the other way', ['bo'], { whileBusy: 'steer' }));
  stage = await openStage({ agents: [{ id: 'bo', model, tools: ['look'] }], tools: [tool] });
  for (const text of ['word-one', 'word-two', 'word-three']) {
    await post(stage, text, ['bo']);
    await stage.quiet();
  }
  return { stage, seen: memory.seen };
}

test('a session that waits for results gets no other words: it is rewound, and gets all of the turn so far', async () => {
  const { stage, seen } = await play(true);
  expect(seen.map(({ change }) => change)).toEqual(['started', 'resumed', 'rewound', 'resumed']);
  expect(seen[2]?.sent.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user']);
  expect(seen[2]?.sent.at(-1)?.content).toBe('the other way');
  for (const word of ['word-two', 'the other way']) {
    expect(seen[3]?.transcript.filter((text) => text.includes(word))).toHaveLength(1);
  }
  expect(answered(await stage.events('c'))[1]).toEqual(['done', ['word-two', 'the other way']]);
  await sound(stage);
});

test('one that cannot be rewound is replaced, and the new one gets everything', async () => {
  const { stage, seen } = await play(false);
  expect(seen.map(({ change }) => change)).toEqual(['started', 'resumed', 'started', 'resumed']);
  for (const word of ['word-one', 'word-two', 'the other way']) {
    expect(seen[3]?.transcript.filter((text) => text.includes(word))).toHaveLength(1);
  }
  await sound(stage);
});
