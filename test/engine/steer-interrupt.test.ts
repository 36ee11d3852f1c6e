import { describe, expect, test } from 'vitest';
import type { AgentId, EventDraft, EventId } from '../../src/events/index.ts';
import { createStore } from '../../src/store/create-store.ts';
import { asks, byStep, gated, inOrder, says, shown, times } from '../support/engine-models.ts';
import { ANA, logOf, openStage } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';
import { answered, endings, meanwhile, post, sound } from '../support/steer-stage.ts';

describe('a message that interrupts', () => {
  test('aborts the model call at once: the turn keeps its words, and the message is the next', async () => {
    const model = gated(says('half a ', 'thought'), 2);
    const stage = await openStage({ agents: [{ id: 'bo', model }] });
    await post(stage, 'begin', ['bo']);
    await model.reached();
    await post(stage, 'stop that', ['bo'], { whileBusy: 'interrupt' });
    await stage.quiet();
    const events = await stage.events('c');
    expect(answered(events)).toEqual([
      ['aborted', ['begin']],
      ['done', ['stop that']],
    ]);
    expect(endings(events)[0]?.body).toMatchObject({ by: 'interrupted', partial: 'half a ' });
    expect(shown(model.requests[1])).toMatch(
      /half a \n\[reminder #(\d{6})\]\n\[interrupted\]\n#\1\nstop that/,
    );
    await sound(stage);
  });

  test('ends the turn between two steps if its process got no notice', async () => {
    const driver = await openDriver();
    const draft: EventDraft = {
      id: 'm9' as EventId,
      author: ANA,
      to: ['bo' as AgentId],
      kind: 'message',
      body: { content: 'from afar' },
      whileBusy: 'interrupt',
    };
    const model = byStep(asks(['look', {}]), says('done'));
    const tool = meanwhile(() => createStore(driver).append(logOf('c'), [{ draft, at: 5, tokens: 2 }]));
    const stage = await openStage({ driver, agents: [{ id: 'bo', model, tools: ['look'] }], tools: [tool] });
    await post(stage, 'begin', ['bo']);
    await stage.quiet();
    const events = await stage.events('c');
    expect(answered(events)).toEqual([
      ['aborted', ['begin']],
      ['done', ['from afar']],
    ]);
    expect(endings(events)[0]?.body).toMatchObject({ by: 'interrupted' });
    expect(model.requests.map(({ trace }) => `${trace.turn} ${trace.step}`)).toEqual([
      'c:bo:1 1',
      'c:bo:2 1',
      'c:bo:2 2',
    ]);
    await sound(stage);
  });

  test('takes precedence over steering messages, which are no longer taken in', async () => {
    const model = byStep(asks(['look', {}]), says('done'));
    const driver = await openDriver();
    const drafts = (['steer', 'interrupt'] as const).map((whileBusy): EventDraft => ({
      id: whileBusy as string as EventId,
      author: ANA,
      to: ['bo' as AgentId],
      kind: 'message',
      body: { content: whileBusy },
      whileBusy,
    }));
    const entries = drafts.map((draft) => ({ draft, at: 5, tokens: 2 }));
    const tool = meanwhile(() => createStore(driver).append(logOf('c'), entries));
    const stage = await openStage({ driver, agents: [{ id: 'bo', model, tools: ['look'] }], tools: [tool] });
    await post(stage, 'begin', ['bo']);
    await stage.quiet();
    expect(answered(await stage.events('c'))).toEqual([
      ['aborted', ['begin']],
      ['done', ['steer', 'interrupt']],
    ]);
    await sound(stage);
  });

  test('leaves alone a turn that has it among its inputs, and an idle agent', async () => {
    const model = inOrder(says('yes'));
    const stage = await openStage({ agents: [{ id: 'bo', model, whileBusy: 'interrupt' }] });
    await post(stage, 'one', ['bo']);
    await stage.quiet();
    await post(stage, 'two', ['bo']);
    await stage.quiet();
    expect(answered(await stage.events('c'))).toEqual([
      ['done', ['one']],
      ['done', ['two']],
    ]);
    await sound(stage);
  });

  test('may be repeated: the same id interrupts no later turn', async () => {
    const model = gated(says('half a ', 'thought'), 2);
    const stage = await openStage({ agents: [{ id: 'bo', model }] });
    await post(stage, 'begin', ['bo']);
    await model.reached();
    const once = () => post(stage, 'stop', ['bo'], { whileBusy: 'interrupt', id: 'once' });
    await once();
    await stage.quiet();
    await once();
    await stage.quiet();
    expect(answered(await stage.events('c')).map(([kind]) => kind)).toEqual(['aborted', 'done']);
    await sound(stage);
  });
});

describe('an agent that refuses messages while it works', () => {
  test('refuses with its name, stores nothing, and accepts again when idle', async () => {
    const model = gated(says('one ', 'moment'), 2);
    const stage = await openStage({ agents: [{ id: 'bo', model, whileBusy: 'reject' }] });
    await post(stage, 'begin', ['bo'], { id: 'first' });
    await model.reached();
    const head = (await stage.events('c')).length;
    await expect(post(stage, 'and', ['bo'])).rejects.toMatchObject({
      code: 'agent_busy',
      data: { agent: 'bo', turn: 'c:bo:1' },
    });
    expect(await stage.events('c')).toHaveLength(head);
    // A message that is stored already is not new, and a message that asks to wait is accepted.
    expect(await post(stage, 'begin', ['bo'], { id: 'first' })).toMatchObject({ seq: 1 });
    await post(stage, 'in time', ['bo'], { whileBusy: 'queue' });
    model.open();
    await stage.quiet();
    await post(stage, 'now', ['bo']);
    await stage.quiet();
    const events = await stage.events('c');
    expect(answered(events).map(([, words]) => words)).toEqual([['begin'], ['in time'], ['now']]);
    expect(times(shown(model.requests.at(-1)), 'now')).toBe(1);
    await sound(stage);
  });
});
