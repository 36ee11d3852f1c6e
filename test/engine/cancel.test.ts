import { expect, test } from 'vitest';
import type { Event, TurnId } from '../../src/events/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import * as z from 'zod';
import { type Tap, mortal, tapDriver, writtenBy } from '../support/engine-driver.ts';
import { asks, byStep, gated, inOrder, says, shown, times } from '../support/engine-models.ts';
import { ANA, openStage, type Stage, turns, until } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';

const TURN = 'c:bo:1' as TurnId;

/** Whether the abort was acknowledged. */
async function abort(stage: Stage, turn: TurnId = TURN): Promise<boolean> {
  try {
    await stage.troupe.command({ command: 'abort', turn }, ANA);
    return true;
  } catch (error) {
    expect((error as { code?: string }).code).toBe('command_refused');
    return false;
  }
}

function endOf(events: readonly Event[], turn: TurnId = TURN): Event | undefined {
  return events.find((event) => event.turn === turn && event.id === `${turn}:end`);
}

test('a stopped turn keeps its words, publishes no reply, and the next message is answered', async () => {
  const model = gated(says('half a ', 'thought'), 2);
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'think', ['bo']);
  await model.reached();
  expect(await abort(stage)).toBe(true);
  await stage.quiet();
  const end = endOf(await stage.events('c'));
  expect(end).toMatchObject({ kind: 'turn.aborted', body: { covers: [1], partial: 'half a ' } });
  await stage.say('c', 'continue', ['bo']);
  await stage.quiet();
  expect(times(shown(model.requests[1]), 'half a ')).toBe(1);
  expect(times(shown(model.requests[1]), '[interrupted]')).toBe(1);
  expect(endOf(await stage.events('c'), 'c:bo:2' as TurnId)?.kind).toBe('turn.done');
  expect(await stage.check('c', { cancelled: [TURN] })).toEqual([]);
});

test('a message that arrives before a turn is stopped is answered by the next turn', async () => {
  const model = gated(says('half a ', 'thought'), 2);
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'think', ['bo']);
  await model.reached();
  await stage.say('c', 'never mind that, do this', ['bo']);
  await abort(stage);
  await stage.quiet();
  const events = await stage.events('c');
  expect(endOf(events)?.kind).toBe('turn.aborted');
  expect(endOf(events, 'c:bo:2' as TurnId)).toMatchObject({ kind: 'turn.done', body: { covers: [5] } });
});

test('an answer that was complete at the stop is kept as partial', async () => {
  const driver = await openDriver();
  let stopped: boolean | null = null;
  const tap: Tap = async (op, phase, args) => {
    if (stopped !== null || phase !== 'before' || !writtenBy(op, args).some((id) => id.endsWith(':reply')))
      return;
    stopped = false;
    stopped = await abort(stage);
  };
  const stage = await openStage({
    driver: tapDriver(driver, tap),
    agents: [{ id: 'bo', model: inOrder(says('all of it')) }],
  });
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  expect(stopped).toBe(true);
  expect(endOf(await stage.events('c'))).toMatchObject({
    kind: 'turn.aborted',
    body: { partial: 'all of it' },
  });
});

test('a stop that no process could carry out is found by the next holder, before any model call', async () => {
  const driver = await openDriver();
  const model = gated(says('half'), 1);
  const first = mortal(driver);
  const killed = await openStage({ driver: first.driver, agents: [{ id: 'bo', model }] });
  await killed.say('c', 'go', ['bo']);
  await model.reached();
  first.kill();

  const after = inOrder(says('too late'));
  await driver.requestAbort({ tenant: 'default', conversation: 'c', agent: 'bo' }, TURN);
  const stage = await openStage({ driver, agents: [{ id: 'bo', model: after }] });
  await stage.quiet();
  expect(after.requests).toHaveLength(0);
  expect(endOf(await stage.events('c'))?.kind).toBe('turn.aborted');
  expect(await stage.check('c', { cancelled: [TURN] })).toEqual([]);
});

test('stopping a turn that does not run is refused and leaves no event', async () => {
  const stage = await openStage({ agents: [{ id: 'bo', model: inOrder(says('done')) }] });
  await stage.say('c', 'go', ['bo']);
  expect(await abort(stage, 'c:bo:7' as TurnId)).toBe(false);
  await stage.quiet();
  expect(await abort(stage)).toBe(false);
  expect((await stage.events('c')).filter(({ kind }) => kind === 'command')).toEqual([]);
});

/** Stops a turn of two steps, with a tool and a handoff, at one of its store operations. */
async function stoppedAt(point: number): Promise<{ stage: Stage; acked: boolean; reached: boolean }> {
  const driver = await openDriver();
  let seen = 0;
  let acked = false;
  let busy = false;
  const tap: Tap = async () => {
    if (busy || seen++ !== point) return;
    busy = true;
    acked = await abort(stage).catch(() => false);
    busy = false;
  };
  const note = defineTool({ name: 'note', description: 'n', schema: z.object({}), run: () => 'noted' });
  const handoff = ['handoff', { to: 'cy', goal: 'go on' }] as [string, unknown];
  const stage = await openStage({
    driver: tapDriver(driver, tap),
    tools: [note],
    agents: [
      { id: 'bo', model: byStep(asks(['note', {}]), asks(handoff)), tools: ['note', 'handoff'] },
      { id: 'cy', model: inOrder(says('taken')) },
    ],
  });
  await driver.putOnce({ tenant: '-', namespace: 'meta', key: 'warm' }, 'x', 0);
  await stage.say('c', 'go', ['bo']);
  await stage.quiet();
  return { stage, acked, reached: seen > point };
}

test('wherever in a turn it comes, an acknowledged stop prevents reply and handoff, and work goes on', async () => {
  let acks = 0;
  let point = 0;
  for (; ; point++) {
    const { stage, acked, reached } = await stoppedAt(point);
    if (!reached) break;
    if (acked) acks++;
    const cancelled = acked ? [TURN] : [];
    expect(await stage.check('c', { cancelled }), `stopped at store operation ${point}`).toEqual([]);
    await stage.say('c', 'and now?', ['cy']);
    await stage.quiet();
    expect(await stage.check('c', { cancelled })).toEqual([]);
    if (point > 400) break;
  }
  expect(point).toBeGreaterThan(40);
  // There is nothing to stop before the pin and after the commit.
  expect(acks).toBeGreaterThan(point / 4);
});

test('a stop at every point of the stream ends the turn as aborted', async () => {
  for (let point = 0; point < 5; point++) {
    const model = gated(says('a', 'b', 'c'), point);
    const stage = await openStage({ agents: [{ id: 'bo', model }] });
    await stage.say('c', 'go', ['bo']);
    await model.reached();
    expect(await abort(stage)).toBe(true);
    // Stops at once, with no time passing: it does not wait for the next lease renewal.
    await until('the turn has ended', async () => endOf(await stage.events('c')) !== undefined);
    await stage.quiet();
    const partial = 'abc'.slice(0, Math.max(0, point - 1));
    expect(endOf(await stage.events('c'))).toMatchObject({ kind: 'turn.aborted', body: { partial } });
    expect(await stage.check('c', { cancelled: [TURN] })).toEqual([]);
  }
});

test('two stops of one turn are both acknowledged and end it once', async () => {
  const model = gated(says('a', 'b'), 1);
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'go', ['bo']);
  await model.reached();
  expect(await Promise.all([abort(stage), abort(stage)])).toEqual([true, true]);
  await stage.quiet();
  await turns(5);
  expect(await stage.check('c', { cancelled: [TURN] })).toEqual([]);
});

test('a stop whose author is not valid stops nothing', async () => {
  const model = gated(says('all ', 'said'), 2);
  const stage = await openStage({ agents: [{ id: 'bo', model }] });
  await stage.say('c', 'go', ['bo']);
  await model.reached();
  const nobody = { kind: 'user', id: '', name: '' } as const;
  const stop = stage.troupe.command({ command: 'abort', turn: TURN }, nobody);
  await expect(stop).rejects.toMatchObject({ code: 'event_invalid' });
  model.open();
  await stage.quiet();
  expect(endOf(await stage.events('c'))?.kind).toBe('turn.done');
});
