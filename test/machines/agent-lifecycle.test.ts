import { describe, expect, test } from 'vitest';
import { initialTransition, type SnapshotFrom, transition } from 'xstate';
import { type AgentEvent, agentLifecycle, EFFECTS, MAX_TRIES } from '../../src/machines/agent-lifecycle.ts';
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
  { type: 'MODEL_FAILED', retryable: true },
  { type: 'MODEL_FAILED', retryable: false },
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
  { type: 'PAUSE' },
  { type: 'RESUME' },
  { type: 'BREAK' },
  { type: 'RETRY' },
  { type: 'RETIRE' },
  { type: 'RECALL' },
];
const WAITING = ['waiting.delegation', 'waiting.approval', 'waiting.answer'];
const AT_REST = ['idle', ...WAITING, 'paused', 'failed', 'retired'];

type Snapshot = SnapshotFrom<typeof agentLifecycle>;
type Visited = Visit<Snapshot, AgentEvent>;
const next = (snapshot: Snapshot, event: AgentEvent) => transition(agentLifecycle, snapshot, event)[0];
const visits: Visited[] = explore({
  start: initialTransition(agentLifecycle)[0],
  next,
  alphabet: ALPHABET,
  within: ({ context }) => context.turns <= 2 && context.steps <= 3,
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

  test('every effect is refused into committing, and no state at rest has an effect', () => {
    for (const visit of visits) {
      if (visit.snapshot.tags.size > 0) expect(target(visit, 'REFUSED')).toEqual(['working.committing']);
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

  test('M3: at rest the context depends on the number of settled turns alone', () => {
    for (const { path, snapshot } of visits) {
      if (AT_REST.includes(path))
        expect(snapshot.context).toEqual({ turns: snapshot.context.turns, steps: 0, tries: 0 });
    }
  });

  test('a turn settles exactly once, by COMMITTED', () => {
    for (const { snapshot, steps } of visits) {
      for (const step of steps) {
        const settled = step.next.context.turns - snapshot.context.turns;
        const commits = step.event.type === 'COMMITTED' && pathOf(snapshot.value) === 'working.committing';
        expect(settled).toBe(commits ? 1 : 0);
      }
    }
  });

  test(`a model call is tried ${MAX_TRIES} times if repeating can help, once if not`, () => {
    const streaming = visits.find(
      ({ path, snapshot }) => path === 'working.streaming' && snapshot.context.tries === 0,
    );
    let snapshot = (streaming as Visited).snapshot;
    for (let tries = 1; tries < MAX_TRIES; tries++) {
      snapshot = next(snapshot, { type: 'MODEL_FAILED', retryable: true });
      expect(pathOf(snapshot.value)).toBe('backoff');
      snapshot = next(snapshot, { type: 'RETRY_DUE' });
    }
    snapshot = next(snapshot, { type: 'MODEL_FAILED', retryable: true });
    expect(pathOf(snapshot.value)).toBe('working.committing');
    const once = next((streaming as Visited).snapshot, { type: 'MODEL_FAILED', retryable: false });
    expect(pathOf(once.value)).toBe('working.committing');
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
