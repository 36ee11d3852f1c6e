import { expect, test } from 'vitest';
import { createStore } from '../../src/store/create-store.ts';
import type { AgentId, EventDraft, EventId } from '../../src/events/index.ts';
import { forever, isRead, tapDriver } from '../support/engine-driver.ts';
import { asks, bytes, byStep, says, shown, times } from '../support/engine-models.ts';
import { ANA, logOf, openStage, type Stage, turns } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';
import { answered, meanwhile, post, sound } from '../support/steer-stage.ts';

function said(id: string, whileBusy: 'queue' | 'steer' | 'interrupt'): EventDraft {
  const body = { content: `words of ${id}` };
  return { id: id as EventId, author: ANA, to: ['bo' as AgentId], kind: 'message', body, whileBusy };
}

/** A person posts while a tool runs. Processes crash one after the other, each at the given store operation. */
async function playUntil(deaths: readonly number[], drafts: readonly EventDraft[]) {
  const driver = await openDriver();
  const outside = createStore(driver);
  const entries = drafts.map((draft) => ({ draft, at: 5, tokens: 2 }));
  const tool = meanwhile(() => outside.append(logOf('c'), entries));
  const model = byStep(asks(['look', {}]), asks(['look', {}]), says('done'));
  const options = { agents: [{ id: 'bo', model, tools: ['look'] }], tools: [tool] };
  const begin = (stage: Stage) => post(stage, 'begin', ['bo'], { id: 'begin' });
  let died = 0;
  for (const at of deaths) if (await liveUntil(at)) died += 1;
  const stage = await openStage({ ...options, driver });
  await begin(stage);
  await stage.quiet();
  return { died, stage, model, events: await stage.events('c') };

  /** Whether the process reached this operation. */
  async function liveUntil(at: number): Promise<boolean> {
    let count = 0;
    let dead = false;
    const mortal = tapDriver(driver, (op) => {
      if (!isRead(op)) dead ||= ++count === at;
      return dead ? forever() : undefined;
    });
    const first = await openStage({ ...options, driver: mortal });
    void begin(first);
    for (let still = 0; !dead && still < 5;) {
      const { waiting, active, delayed } = await first.troupe.queues();
      still = count > 0 && waiting + active + delayed === 0 ? still + 1 : 0;
      await turns();
    }
    return dead;
  }
}

test('wherever the process dies, steering words reach the turn once, in order, and its prompts stay the same', async () => {
  let points = 0;
  for (let at = 1; ; at++) {
    const drafts = [said('one', 'queue'), said('two', 'steer')];
    const { died, stage, model, events } = await playUntil([at], drafts);
    expect(answered(events), `killed at ${at}`).toEqual([
      ['done', ['begin', 'words of one', 'words of two']],
    ]);
    expect(shown(model.requests.at(-1))).toMatch(/begin[^]*words of one[^]*words of two/);
    expect(times(shown(model.requests.at(-1)), 'words of')).toBe(2);
    const sent = Map.groupBy(model.requests, ({ trace }) => trace.step);
    for (const requests of sent.values()) expect(new Set(requests.map(bytes)).size).toBe(1);
    await sound(stage);
    await stage.driver.close();
    points += 1;
    if (died === 0) break;
  }
  expect(points).toBeGreaterThan(40);
});

test('wherever the process dies, an interrupting message ends the turn or is the next one', async () => {
  const kinds = new Set<string>();
  for (let at = 1; ; at++) {
    const { died, stage, events } = await playUntil([at], [said('one', 'interrupt')]);
    const ends = answered(events);
    kinds.add(ends.map(([kind]) => kind).join(' '));
    expect(
      ends.flatMap(([, words]) => words),
      `killed at ${at}`,
    ).toEqual(['begin', 'words of one']);
    await sound(stage);
    await stage.driver.close();
    if (died === 0) break;
  }
  expect([...kinds]).toEqual(['aborted done']);
});

test.each(['steer', 'interrupt'] as const)(
  'the process that resumes a turn may die as well: %s',
  async (whileBusy) => {
    const drafts = [said('one', 'queue'), said('two', whileBusy)];
    const expected = {
      steer: [['done', ['begin', 'words of one', 'words of two']]],
      interrupt: [
        ['aborted', ['begin']],
        ['done', ['words of one', 'words of two']],
      ],
    };
    // In the middle of the first step, or of the second.
    const at = whileBusy === 'steer' ? 46 : 30;
    for (let then = 10; ; then++) {
      const { died, stage, events } = await playUntil([at, then], drafts);
      expect(answered(events), `killed at ${at}, then at ${then}`).toEqual(expected[whileBusy]);
      await sound(stage);
      await stage.driver.close();
      if (died < 2) break;
    }
  },
  90_000,
);
