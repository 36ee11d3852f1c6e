import { expect, test } from 'vitest';
import { agentLifecycle } from '../../src/machines/agent-lifecycle.ts';
import { describeMachine } from '../../src/machines/describe.ts';
import { workflow } from '../../src/machines/workflow.ts';

function state(path: string) {
  return describeMachine(agentLifecycle).states.find((each) => each.path === path);
}

test('a description lists the legal events of a state, inherited ones included, with guard and target', () => {
  expect(state('working.streaming')).toEqual({
    path: 'working.streaming',
    initial: false,
    effect: 'callModel',
    events: [
      { event: 'MODEL_REPLIED', guard: null, target: 'working.supervising' },
      { event: 'MODEL_CALLED', guard: null, target: 'working.acting' },
      { event: 'OVERFLOWED', guard: null, target: 'working.compacting' },
      { event: 'MODEL_FAILED', guard: 'mayRetry', target: 'backoff' },
      { event: 'MODEL_FAILED', guard: null, target: 'working.committing' },
      { event: 'ABORTED', guard: null, target: 'working.committing' },
      { event: 'REFUSED', guard: null, target: 'working.committing' },
    ],
  });
});

test('a description has one initial state, names every effect, and is plain data', () => {
  for (const machine of [agentLifecycle, workflow]) {
    const described = describeMachine(machine);
    expect(described.id).toBe(machine.id);
    expect(described.states.filter(({ initial }) => initial)).toHaveLength(1);
    expect(JSON.parse(JSON.stringify(described))).toEqual(described);
  }
  expect(state('idle')).toMatchObject({ initial: true, effect: null });
  expect(state('backoff')).toMatchObject({ effect: 'backOff' });
});

test('waiting accepts the same events as idle: a waiting agent can take other turns', () => {
  for (const path of ['waiting.delegation', 'waiting.approval', 'waiting.answer']) {
    expect(state(path)?.events.map(({ event }) => event)).toEqual(
      state('idle')?.events.map(({ event }) => event),
    );
  }
});
