import { expect } from 'vitest';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { createView, foldEvent, type Steps } from '../../src/context/index.ts';
import { beginTurnSteps } from '../../src/context/render/begin-turn.ts';
import { extractionSteps } from '../../src/context/compaction/compose.ts';
import { DEFAULT_POLICY } from '../../src/context/compaction/policy.ts';
import { peopleOf } from '../../src/context/text/people.ts';
import { summaryRequestSteps } from '../../src/context/summary/requests.ts';
import type { Event } from '../../src/events/index.ts';
import { COSTLY_TEXTS, costlyText } from '../support/costly-texts.ts';
import { attack } from './attack.ts';
import { ACME, ANA, EVE, only, openStage, withKey, ZETA } from './stage.ts';

const MESSAGES = 60;
const BYTES = 16_000;

attack(43, 'messages of random words freeze nobody: their turn is taken in slices', async (refused) => {
  let pauses = 0;
  const sleep: Clock['sleep'] = (ms, signal) => {
    if (ms === 0) pauses += 1;
    return systemClock.sleep(ms, signal);
  };
  await using stage = await openStage({
    guarded: true,
    agents: [{ id: 'bo', contextWindow: 32_000 }],
    troupe: { clock: { ...systemClock, sleep } },
    app: { traffic: { messagesPerSecond: 10_000, requestsPerSecond: 10_000 } },
  });
  const eve = await withKey(stage, ACME, { scopes: ['write'] });
  const zeta = await withKey(stage, ZETA);
  const say = (content: string, to: string[] = []) =>
    eve('/api/conversations/c/events', { body: { author: EVE, content, to } });
  for (let n = 0; n < MESSAGES; n++)
    expect((await say(costlyText('random words', BYTES, n))).status).toBe(201);

  const acme = stage.troupe.forTenant(ACME);
  let isOver = false;
  acme.watch((note) => {
    isOver ||= note.type === 'event' && note.event.kind === 'turn.done';
  });
  const before = pauses;
  await say('What now?', ['bo']);
  let answered = 0;
  while (!isOver) {
    const { status } = await zeta('/api/conversations/d/events', {
      body: { author: ANA, content: 'and me?' },
    });
    expect(status).toBe(201);
    answered += 1;
  }
  await stage.troupe.idle();
  const { events } = await acme.events('c', { after: MESSAGES, limit: 1_000 });
  expect(only(events, 'turn.failed')).toEqual([]);
  expect(only(events, 'message').at(-1)).toMatchObject({ author: { id: 'bo' } });
  expect(pauses - before).toBeGreaterThan(100);
  expect(answered).toBeGreaterThan(10);
  refused('another tenant is answered meanwhile');
});

/** The tokenizer reads no more of one text. */
const MOST_OF_ONE_COUNT = 24_576;
/** Characters counted between two pauses, and worked on by one step, at most. */
const MOST_COUNTED = 131_072;
const MOST_OF_A_STEP = 262_144;
/** Work of a whole compaction per character of the log, plus what it costs however short the log is. */
const MOST_PER_CHARACTER = 16;
const FIXED_WORK = 16 * 1_048_576;

for (const kind of Object.keys(COSTLY_TEXTS)) {
  attack(43, `a log of ${kind} is compacted in small steps of bounded work`, async (refused) => {
    const log = Array.from({ length: 60 }, (_, n) => said(n + 1, costlyText(kind, BYTES, n)));
    let counted = 0;
    const count = (text: string) => {
      counted += Math.min(text.length, MOST_OF_ONE_COUNT);
      return Math.ceil(text.length / 3);
    };
    const people = peopleOf(log);
    const base = { events: log, previous: null, people, secret: 's', trusted: null, count };
    const view = createView('bo' as never, 's');
    for (const event of log) foldEvent(view, event);
    const every: [string, Steps<unknown>][] = [
      ['extraction', extractionSteps({ ...base, ...COMPACTION, upTo: log.length })],
      ['request', summaryRequestSteps({ ...base, budgetTokens: 4_000, maxTokens: 100_000 })],
      ['turn', beginTurnSteps(view, turnUpTo(log.length))],
    ];
    for (const [what, steps] of every) {
      let sum = 0;
      for (let step = steps.next(); !step.done; step = steps.next()) {
        expect(step.value, what).toBeLessThanOrEqual(MOST_OF_A_STEP);
        expect(counted, what).toBeLessThanOrEqual(MOST_COUNTED);
        counted = 0;
        sum += step.value;
      }
      expect(sum, what).toBeLessThan(FIXED_WORK + MOST_PER_CHARACTER * log.length * BYTES);
    }
    refused('in small steps');
  });
}

attack(43, 'ten thousand people of one name are told apart in linear time', async (refused) => {
  const people = 10_000;
  const log = Array.from({ length: people }, (_, n) => ({
    ...said(n + 1, 'hello'),
    author: { kind: 'user' as const, id: `eve${n}`, name: 'Eve' },
  })) as Event[];
  let looks = 0;
  const counted = <T extends object>(map: T): T =>
    new Proxy(map, {
      get(target, key) {
        looks += 1;
        const value: unknown = Reflect.get(target, key);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
  const view = createView('bo' as never, 's');
  for (const event of log) foldEvent(view, event);
  const [namesakes] = [...view.people.skeletons.values()];
  expect(namesakes?.speakers.size).toBe(people);
  if (namesakes) namesakes.speakers = counted(namesakes.speakers);
  const steps = beginTurnSteps(view, turnUpTo(people));
  for (let step = steps.next(); !step.done; step = steps.next());
  expect(looks).toBeLessThan(people * 20);
  refused('each is found by id');
});

const COMPACTION = {
  number: 1,
  reason: 'over_budget' as const,
  by: 'bo' as never,
  before: 10_000_000,
  budget: 60_000,
  policy: DEFAULT_POLICY,
};

function turnUpTo(upTo: number) {
  return {
    id: 't' as never,
    upTo,
    inputs: [upTo],
    live: {},
    join: 'full' as const,
    baseline: null,
  } as never;
}

function said(seq: number, content: string): Event {
  const place = { tenant: 'default', conversation: 'c', seq, at: seq, id: `e${seq}`, to: [] };
  const tokens = Math.ceil(content.length / 3);
  return { ...place, tokens, author: EVE, kind: 'message', body: { content } } as unknown as Event;
}
