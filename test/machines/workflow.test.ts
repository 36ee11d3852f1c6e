import { expect, test } from 'vitest';
import { describeMachine } from '../../src/machines/describe.ts';
import { newWorkflow, nextState, workflow, type WorkflowEvent } from '../../src/machines/workflow.ts';
import type { AgentId, RunStep } from '../../src/events/index.ts';
import { explore } from '../support/engine-machine.ts';

const step = (id: string, completeWhen: RunStep['completeWhen']): RunStep => {
  return { id, agent: 'bo' as AgentId, brief: id, completeWhen };
};
const STEPS = [step('one', 'reply'), step('two', 'tool')];

const ALPHABET: WorkflowEvent[] = [
  { type: 'BEGIN', steps: STEPS, number: 1, attempt: 1 },
  { type: 'BEGIN', steps: STEPS, number: 2, attempt: 2 },
  { type: 'ASK', seq: 7 },
  { type: 'NOTE' },
  { type: 'HAND_OVER', to: 'cy' as AgentId, seq: 9 },
  { type: 'DONE' },
  { type: 'FAIL' },
  { type: 'END' },
];
const visits = explore({ start: newWorkflow(), next: nextState, alphabet: ALPHABET, within: () => true });

test('every state of a run is reached, and every event is accepted somewhere', () => {
  const described = describeMachine(workflow).states;
  expect(new Set(visits.map(({ path }) => path))).toEqual(new Set(described.map(({ path }) => path)));
  const accepted = new Set(ALPHABET.map(({ type }) => type as string));
  const moved = visits.flatMap(({ snapshot, steps }) =>
    steps
      .filter(({ next }) => JSON.stringify(next) !== JSON.stringify(snapshot))
      .map(({ event }) => event.type),
  );
  expect(new Set(moved)).toEqual(accepted);
});

test('a run is restarted only by a later attempt, and only requested steps are done', () => {
  for (const { snapshot, path, steps } of visits) {
    for (const { event, next } of steps) {
      const { attempt, noted, number } = snapshot.context;
      if (event.type === 'BEGIN' && event.attempt <= attempt) expect(next).toEqual(snapshot);
      if (event.type === 'BEGIN' && event.attempt > attempt)
        expect(next).toMatchObject({ value: 'directed', context: { number: event.number, noted: false } });
      if (event.type !== 'DONE') continue;
      if (path !== 'asked' || (number === 2 && !noted)) expect(next).toEqual(snapshot);
      else expect(next.value).toBe(number === 2 ? 'completed' : 'directed');
    }
  }
});

test('the position of a run can be cloned', () => {
  for (const { snapshot } of visits) expect(structuredClone(snapshot)).toEqual(snapshot);
});
