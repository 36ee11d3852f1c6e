import { describe, expect, test } from 'vitest';
import { createStore } from '../../src/store/create-store.ts';
import type { AgentId, EventDraft, EventId, TurnId } from '../../src/events/index.ts';
import { asks, byStep, gated, inOrder, says, shown, times } from '../support/engine-models.ts';
import { ANA, logOf, openStage, type Stage, type StageAgent, until } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';
import { answered, endings, meanwhile, only, post, sound } from '../support/steer-stage.ts';

const LOOK = ['look', {}] as [string, object];

/** Bo calls a tool; a message arrives during the call; then bo answers. */
async function play(
  during: (stage: Stage) => Promise<unknown>,
  agent: Partial<StageAgent> = {},
  others: StageAgent[] = [],
) {
  const model = byStep(asks(LOOK), says('done'));
  let stage: Stage | null = null;
  const tool = meanwhile(async () => stage && during(stage));
  stage = await openStage({
    agents: [{ id: 'bo', model, tools: ['look'], ...agent }, ...others],
    tools: [tool],
  });
  await post(stage, 'begin', ['bo']);
  await stage.quiet();
  return { stage, model, events: await stage.events('c') };
}

describe('a message to a working agent', () => {
  test('waits for the next turn by default', async () => {
    const { stage, model, events } = await play((at) => post(at, 'and this', ['bo']));
    expect(times(shown(model.requests[1]), 'and this')).toBe(0);
    expect(answered(events)).toEqual([
      ['done', ['begin']],
      ['done', ['and this']],
    ]);
    await sound(stage);
  });

  test('that steers is seen by the next step, once, with its author, and by no other turn', async () => {
    const cy = { kind: 'user', id: 'u2', name: 'Cy' } as const;
    const { stage, model, events } = await play((at) =>
      post(at, 'the other way', ['bo'], { whileBusy: 'steer', author: cy }),
    );
    expect(model.requests).toHaveLength(2);
    const roles = model.requests[1]?.messages.map(({ role }) => role);
    expect(roles?.slice(-3)).toEqual(['assistant', 'tool', 'user']);
    expect(model.requests[1]?.messages.at(-1)?.content).toBe('[Cy] the other way');
    expect(only(events, 'turn.steered')).toMatchObject([{ body: { step: 1, upTo: 5, inputs: [5] } }]);
    expect(answered(events)).toEqual([['done', ['begin', 'the other way']]]);
    await post(stage, 'next', ['bo']);
    await stage.quiet();
    expect(times(shown(model.requests.at(-1)), 'the other way')).toBe(1);
    await sound(stage);
  });

  test("steers if the agent's policy says so, unless the message says otherwise", async () => {
    const { stage, events } = await play(
      async (at) => {
        await post(at, 'one', ['bo']);
        await post(at, 'two', ['bo'], { whileBusy: 'queue' });
      },
      { whileBusy: 'steer' },
    );
    expect(answered(events)).toEqual([
      ['done', ['begin', 'one']],
      ['done', ['two']],
    ]);
    await sound(stage);
  });

  test('is taken in with all earlier pending messages, oldest first; later ones and those to others stay', async () => {
    const cy = { id: 'cy', model: inOrder(says('yes')) };
    const { stage, model, events } = await play(
      async (at) => {
        await post(at, 'first', ['bo']);
        await post(at, 'for cy', ['cy'], { whileBusy: 'steer' });
        await post(at, 'to nobody', []);
        await post(at, 'second', ['bo'], { whileBusy: 'steer' });
        await post(at, 'third', ['bo']);
      },
      {},
      [cy],
    );
    const [, then] = model.requests;
    expect(then?.messages.slice(-2).map(({ content }) => content)).toEqual(['first', 'second']);
    expect(shown(then)).not.toMatch(/for cy|to nobody|third/);
    expect(answered(events)).toEqual([
      ['done', ['begin', 'first', 'second']],
      ['done', ['third']],
    ]);
    expect(shown(model.requests[2])).toMatch(/for cy[^]*to nobody[^]*third/);
    await sound(stage);
  });

  test('that arrives with the final words starts the next turn', async () => {
    const model = gated(says('almost ', 'there'), 2);
    const stage = await openStage({ agents: [{ id: 'bo', model }] });
    await post(stage, 'begin', ['bo']);
    await model.reached();
    await post(stage, 'wait', ['bo'], { whileBusy: 'steer' });
    model.open();
    await stage.quiet();
    expect(answered(await stage.events('c'))).toEqual([
      ['done', ['begin']],
      ['done', ['wait']],
    ]);
    await sound(stage);
  });

  test('steers just as well from another process, of which this one has had no notice', async () => {
    const driver = await openDriver();
    const model = byStep(asks(LOOK), asks(LOOK), says('done'));
    const draft: EventDraft = {
      id: 'm9' as EventId,
      author: ANA,
      to: ['bo' as AgentId],
      kind: 'message',
      body: { content: 'from afar' },
      whileBusy: 'steer',
    };
    const tool = meanwhile(() => createStore(driver).append(logOf('c'), [{ draft, at: 5, tokens: 2 }]));
    const stage = await openStage({ driver, agents: [{ id: 'bo', model, tools: ['look'] }], tools: [tool] });
    await post(stage, 'begin', ['bo']);
    await stage.quiet();
    expect(model.requests.map((request) => times(shown(request), 'from afar'))).toEqual([0, 1, 1]);
    await sound(stage);
  });

  test('takes nothing back from a turn that is stopped after it came', async () => {
    const model = byStep(asks(LOOK), asks(LOOK), says('done'));
    let stage: Stage | null = null;
    const tool = meanwhile(async () => stage && post(stage, 'left', ['bo'], { whileBusy: 'steer' }));
    const slow = { ...model, stream: slowAt(2) };
    stage = await openStage({ agents: [{ id: 'bo', model: slow, tools: ['look'] }], tools: [tool] });
    await post(stage, 'begin', ['bo']);
    await until('the second step is asked', () => model.requests.length === 2);
    await stage.troupe.command({ command: 'abort', turn: 'c:bo:1' as TurnId }, ANA);
    await stage.quiet();
    const events = await stage.events('c');
    expect(answered(events)).toEqual([['aborted', ['begin', 'left']]]);
    expect(endings(events)[0]?.body).toMatchObject({ by: 'command' });
    await post(stage, 'again', ['bo']);
    await stage.quiet();
    expect(times(shown(model.requests.at(-1)), 'left')).toBe(1);
    await sound(stage, ['c:bo:1']);

    /** Stays silent at one step of the first turn. */
    function slowAt(step: number): typeof model.stream {
      return (request, options) => {
        const answer = model.stream(request, options);
        if (request.trace.step !== step || !request.trace.turn.endsWith(':1')) return answer;
        return (async function* () {
          yield { type: 'start' } as const;
          await new Promise((resolve) => options.signal.addEventListener('abort', resolve));
          yield { type: 'aborted' } as const;
        })();
      };
    }
  });
});

describe('the end of a task', () => {
  const bo = { kind: 'agent', id: 'bo', name: 'bo' } as const;

  function opened(task: string, group: string): EventDraft {
    const body = {
      delegation: task,
      how: 'delegate',
      delegator: 'bo',
      assignee: 'cy',
      task: `do ${task}`,
      home: 'c',
      thread: `c.${task}`,
      root: 'c',
      group,
      join: 'all',
      chain: ['bo'],
    };
    return {
      id: `${task}:opened` as EventId,
      author: bo,
      to: [],
      kind: 'delegation.opened',
      body,
    } as unknown as EventDraft;
  }

  function ended(task: string): EventDraft {
    return {
      id: `${task}:end` as EventId,
      author: { kind: 'agent', id: 'cy', name: 'cy' },
      to: ['bo' as AgentId],
      kind: 'delegation.ended',
      body: { delegation: task, outcome: 'done', result: `result ${task}` },
    };
  }

  test('is seen by the next step of the waiting owner: no second turn', async () => {
    const { stage, model, events } = await play(async ({ deps }) => {
      await deps.log.append(logOf('c'), [opened('d-1', 'g'), ended('d-1')]);
    });
    expect(model.requests).toHaveLength(2);
    expect(times(shown(model.requests[1]), 'result d-1')).toBe(1);
    expect(endings(events)).toHaveLength(1);
    await sound(stage);
  });

  test('waits for the rest of its group, and comes with it', async () => {
    const model = byStep(asks(LOOK), asks(LOOK), says('done'));
    let stage: Stage | null = null;
    let calls = 0;
    const run = async () => {
      const drafts = calls++ === 0 ? [opened('d-1', 'g'), opened('d-2', 'g'), ended('d-2')] : [ended('d-1')];
      await stage?.deps.log.append(logOf('c'), drafts);
      return 'seen';
    };
    const tool = { ...meanwhile(async () => undefined), run };
    stage = await openStage({ agents: [{ id: 'bo', model, tools: ['look'] }], tools: [tool] });
    await post(stage, 'begin', ['bo']);
    await stage.quiet();
    expect(model.requests.map((request) => times(shown(request), 'result d-'))).toEqual([0, 0, 2]);
    expect(endings(await stage.events('c'))).toHaveLength(1);
    await sound(stage);
  });
});
