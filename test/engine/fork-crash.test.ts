import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Event, TurnId } from '../../src/events/index.ts';
import { wrapMethods } from '../../src/store/wrap-methods.ts';
import { asks, breaks, inOrder, modelOf, says, shown } from '../support/engine-models.ts';
import { ANA, logOf, openStage, type Stage } from '../support/engine-stage.ts';
import { at, fork, forkedAs, given } from '../support/fork-stage.ts';
import { allLogs, type Play, playKilledAt } from '../support/killed-play.ts';
import { openDriver } from '../support/mode.ts';

/** A caller without an answer asks again. */
const acknowledged = new WeakSet<Stage>();

/** Answers are a function of the request, so that every process answers alike. */
const PLAY: Play = {
  options: {
    agents: [
      {
        id: 'bo',
        model: modelOf(async function* (request) {
          yield* says(shown(request).includes('second') ? 'two' : 'one');
        }),
      },
    ],
  },
  async act(stage) {
    const events = await stage.events('c');
    if (events.length === 0) await stage.say('c', 'first', ['bo'], 'begin');
    if (acknowledged.has(stage) || !events.some(({ kind }) => kind === 'turn.done')) return;
    await fork(stage, at(4, 'd'));
    acknowledged.add(stage);
  },
};

test('a process that dies during a fork leaves one that a repeated request completes, and no question answered twice', async () => {
  const told = async (stage: Stage) => {
    const logs = await allLogs(stage);
    return [...logs].map(([id, events]) => [id, events.map((event) => [event.seq, event.id])]);
  };
  const calm = await playKilledAt(0, PLAY);
  const expected = await told(calm.stage);
  expect(expected.map(([id]) => id)).toEqual(['c', 'd']);
  for (let point = 1; point <= calm.points.length; point++) {
    const { stage, died, driver } = await playKilledAt(point, PLAY);
    const where = `killed at ${point} of ${calm.points.length}: ${JSON.stringify(calm.points[point - 1])}`;
    expect(died, where).toBe(true);
    // Records leased by a dead process stay leased until the lease expires.
    await given(stage, [fork(stage, at(4, 'd'))]);
    await stage.quiet();
    expect(await told(stage), where).toEqual(expected);
    expect([await stage.check('c'), await stage.check('d')], where).toEqual([[], []]);
    // Not awaited: a dead process may be in the middle of a call for ever.
    void driver.close();
  }
  console.log(`killed at each of ${calm.points.length} points`);
});

test('both logs are sound after any mix of messages, turns, stops, retries and forks', async () => {
  const move = fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant('say' as const), to: fc.subarray(['bo', 'cy']) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('retry' as const), back: fc.nat(1) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('abort' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('fork' as const), part: fc.nat(100) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('wait' as const) }) },
  );
  const figures = { retries: 0, forks: 0, events: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(move, { maxLength: 12 }), fc.nat(), async (moves, seed) => {
      let calls = seed;
      const mind = () =>
        modelOf(async function* ({ trace }) {
          calls += 1;
          if (trace.step === 1 && calls % 5 === 0) yield* asks(['delegate', { to: 'di', task: `t${calls}` }]);
          else if (calls % 7 === 0) yield* asks(['ask', { question: `q${calls}?` }]);
          else if (calls % 2 === 0) yield* breaks('provider_refused', `half ${calls}`);
          else yield* says(`word ${calls}`);
        });
      const tools = ['delegate', 'ask'];
      const stage = await openStage({
        agents: [
          { id: 'bo', model: mind(), tools },
          { id: 'cy', model: mind(), tools },
          { id: 'di', model: mind() },
        ],
      });
      const turns = async () =>
        (await stage.events('c'))
          .filter(({ kind }) => kind === 'turn.started')
          .map(({ turn }) => turn as TurnId);
      await stage.say('c', 'begin', ['bo']);
      let words = 0;
      for (const each of moves) {
        if (each.do === 'say') await stage.say('c', `say ${(words += 1)}`, each.to);
        if (each.do === 'wait') await stage.quiet();
        if (each.do === 'retry') await stage.quiet();
        const all = await turns();
        if (each.do === 'retry' && all.length > 0) {
          const turn = all.at(-1 - (each.back % all.length)) as TurnId;
          await stage.troupe.command({ command: 'retry', turn }, ANA).then(
            () => (figures.retries += 1),
            () => undefined,
          );
        }
        const last = all.at(-1);
        if (each.do === 'abort' && last)
          await stage.troupe.command({ command: 'abort', turn: last }, ANA).catch(() => undefined);
        if (each.do !== 'fork') continue;
        const head = (await stage.events('c')).length;
        const as = forkedAs(await fork(stage, at(Math.ceil((head * each.part) / 100))));
        figures.forks += 1;
        expect(await stage.check(as), as).toEqual([]);
        await stage.say(as, 'go on', ['bo']);
      }
      await stage.quiet();
      const logs = await allLogs(stage);
      for (const [id, events] of logs) {
        figures.events += events.length;
        expect(await stage.check(id), id).toEqual([]);
      }
      await stage.engine.stop();
      await stage.driver.close();
    }),
    { numRuns: 25 },
  );
  expect(figures.retries).toBeGreaterThan(0);
  expect(figures.forks).toBeGreaterThan(0);
  console.log(JSON.stringify(figures));
});

test('a log of 10,000 events is forked in few calls of the store, and each event is read a few times', async () => {
  const made = { calls: 0, rows: 0 };
  const driver = wrapMethods(await openDriver(), (method) => async (...args) => {
    const answer = await method(...args);
    made.calls += 1;
    if (Array.isArray(answer)) made.rows += answer.length;
    return answer;
  });
  const stage = await openStage({ driver, agents: [{ id: 'bo', model: inOrder(says('here')) }] });
  const drafts = Array.from({ length: 10_000 }, (_, n) => ({
    id: `m${n}` as Event['id'],
    author: ANA,
    to: [],
    kind: 'message' as const,
    body: { content: `word ${n}` },
  }));
  for (let n = 0; n < drafts.length; n += 500)
    await stage.deps.log.append(logOf('c'), drafts.slice(n, n + 500));
  await stage.say('c', 'and?', ['bo']);
  await stage.quiet();
  const { head } = await stage.troupe.events('c');
  Object.assign(made, { calls: 0, rows: 0 });
  const event = await fork(stage, at(head, 'd'));
  const { calls, rows } = made;
  expect((await stage.troupe.events('d')).head).toBe(head + 1);
  expect(event.seq).toBe(head + 1);
  expect(await stage.check('d')).toEqual([]);
  console.log(`${head} events forked in ${calls} calls of the store with ${rows} rows`);
  expect(calls).toBeLessThan(head / 50);
  expect(rows).toBeLessThan(4 * head);
});
