import { describe, expect, test } from 'vitest';
import { initialTransition, type SnapshotFrom, transition } from 'xstate';
import {
  AGENT_STEPS,
  type AgentEvent,
  agentLifecycle,
  EFFECTS,
  MAX_TRIES,
  nextAgent,
} from '../../src/machines/agent-lifecycle.ts';
import { describeMachine } from '../../src/machines/describe.ts';
import { explore, pathOf, type Visit } from '../support/engine-machine.ts';

const ALPHABET: AgentEvent[] = [
  { type: 'PINNED' },
  { type: 'PROMPT_READY' },
  { type: 'OVER_BUDGET' },
  { type: 'COMPACTED' },
  { type: 'OVERFLOWED' },
  { type: 'MODEL_REPLIED' },
  { type: 'MODEL_CALLED' },
  failed({ answered: 1 }),
  failed({ answered: MAX_TRIES }),
  failed({ answered: 0, isAway: true }),
  failed({ answered: 1, retryable: false }),
  { type: 'RETRY_DUE' },
  { type: 'CALLS_DONE' },
  { type: 'CALLS_ENDED_TURN' },
  { type: 'ACCEPTED' },
  { type: 'CORRECTED' },
  { type: 'REFUSED' },
  { type: 'ABORTED' },
  { type: 'COMMITTED', waits: null },
  { type: 'COMMITTED', waits: 'delegation' },
  { type: 'COMMITTED', waits: 'approval' },
  { type: 'COMMITTED', waits: 'answer' },
];
const WAITING = ['waiting.delegation', 'waiting.approval', 'waiting.answer'];
const AT_REST = ['idle', ...WAITING];

function failed(change: { answered: number; isAway?: boolean; retryable?: boolean }): AgentEvent {
  return { type: 'MODEL_FAILED', failed: { retryable: true, isAway: false, ...change } };
}

type Snapshot = SnapshotFrom<typeof agentLifecycle>;
type Visited = Visit<Snapshot, AgentEvent>;
const next = (snapshot: Snapshot, event: AgentEvent) => transition(agentLifecycle, snapshot, event)[0];
const visits: Visited[] = explore({
  start: initialTransition(agentLifecycle)[0],
  next,
  alphabet: ALPHABET,
  within: () => true,
});
const isWorking = ({ path }: Visited) => !AT_REST.includes(path);

function target(visit: Visited, type: AgentEvent['type']): string[] {
  const paths = visit.steps.filter(({ event }) => event.type === type);
  return [...new Set(paths.map((step) => pathOf(step.next.value)))];
}

describe('the agent lifecycle', () => {
  test('every state is reached, and every event of the alphabet is accepted somewhere', () => {
    const described = describeMachine(agentLifecycle).states;
    expect(new Set(visits.map(({ path }) => path))).toEqual(new Set(described.map(({ path }) => path)));
    const accepted = new Set(described.flatMap(({ events }) => events.map(({ event }) => event)));
    expect(new Set(ALPHABET.map(({ type }) => type as string))).toEqual(accepted);
  });

  test('what is looked up is what the statechart decides, in every state and for every event', () => {
    expect([...AGENT_STEPS.keys()].map(({ value }) => pathOf(value)).sort()).toEqual(
      visits.map(({ path }) => path).sort(),
    );
    for (const state of AGENT_STEPS.keys()) {
      for (const event of ALPHABET) {
        if (!state.can(event)) expect(() => nextAgent(state, event)).toThrow('is not accepted in');
        else expect(nextAgent(state, event).value).toEqual(next(state, event).value);
      }
    }
  });

  test('M1: a state has at most one effect, and every state with one ends in committing when it is aborted', () => {
    const effects = new Set<string>();
    for (const visit of visits) {
      expect(visit.snapshot.tags.size).toBeLessThanOrEqual(1);
      for (const effect of visit.snapshot.tags) {
        effects.add(effect);
        expect(target(visit, 'ABORTED')).toEqual(['working.committing']);
      }
    }
    expect([...effects].sort()).toEqual([...EFFECTS].sort());
  });

  test('every effect but the wait for a next try is refused into committing, and no state at rest has an effect', () => {
    for (const visit of visits) {
      if (visit.snapshot.tags.size > 0 && visit.path !== 'backoff')
        expect(target(visit, 'REFUSED')).toEqual(['working.committing']);
      if (!isWorking(visit)) expect(visit.snapshot.tags.size).toBe(0);
    }
  });

  test('M2: from every working state committing is reachable, and from committing only idle and waiting', () => {
    for (const visit of visits.filter(isWorking)) {
      expect(target(visit, 'ABORTED')).toEqual(['working.committing']);
      if (visit.path !== 'working.committing') continue;
      const others = visit.steps.map((step) => pathOf(step.next.value)).filter((path) => path !== visit.path);
      expect(new Set(others)).toEqual(new Set(['idle', ...WAITING]));
    }
  });

  test('a turn settles only by COMMITTED', () => {
    for (const visit of visits.filter(isWorking)) {
      for (const { event, next: after } of visit.steps)
        if (AT_REST.includes(pathOf(after.value))) expect(event.type).toBe('COMMITTED');
    }
  });

  test(`a call that a server answers is tried ${MAX_TRIES} times if a retry can help; calls without an answer are not counted`, () => {
    const streaming = visits.find(({ path }) => path === 'working.streaming') as Visited;
    const after = (change: Parameters<typeof failed>[0]) =>
      pathOf(next(streaming.snapshot, failed(change)).value);
    expect(after({ answered: MAX_TRIES - 1 })).toBe('backoff');
    expect(after({ answered: MAX_TRIES })).toBe('working.committing');
    expect(after({ answered: MAX_TRIES, isAway: true })).toBe('backoff');
    expect(after({ answered: 1, retryable: false })).toBe('working.committing');
    expect(after({ answered: 0, isAway: true, retryable: false })).toBe('working.committing');
  });

  test('an event that a state does not accept changes nothing', () => {
    const described = new Map(
      describeMachine(agentLifecycle).states.map((state) => [state.path, state.events]),
    );
    for (const { path, snapshot, steps } of visits) {
      const accepted = new Set(described.get(path)?.map(({ event }) => event));
      for (const step of steps) {
        if (accepted.has(step.event.type)) continue;
        expect([step.next.value, step.next.context]).toEqual([snapshot.value, snapshot.context]);
      }
    }
  });
});
