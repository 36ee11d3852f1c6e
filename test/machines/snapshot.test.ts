import fc from 'fast-check';
import { initialTransition, transition } from 'xstate';
import { expect, test } from 'vitest';
import { TroupeError } from '../../src/base/errors.ts';
import {
  AGENT_MACHINE_VERSION,
  type AgentEvent,
  agentLifecycle,
  newAgent,
  nextAgent,
  restoreAgent,
  saveAgent,
} from '../../src/machines/agent-lifecycle.ts';

const VERSION = AGENT_MACHINE_VERSION;

function corrupt(saved: string, version = VERSION): TroupeError {
  try {
    restoreAgent(saved, version);
  } catch (error) {
    expect(error).toBeInstanceOf(TroupeError);
    return error as TroupeError;
  }
  return expect.fail(`${saved} was restored`);
}

function text(change: Record<string, unknown>, context: Record<string, unknown> = {}): string {
  return JSON.stringify({ value: 'idle', context: { turns: 1, steps: 0, tries: 0, ...context }, ...change });
}

test('the snapshot of a settled turn is the state of the machine, and works when restored', () => {
  let saved: string | null = null;
  for (const waits of [null, 'approval', 'answer', 'delegation', null] as const) {
    const events = ['PINNED', 'PROMPT_READY', 'MODEL_REPLIED', 'ACCEPTED'] as const;
    let at = restoreAgent(saved, VERSION);
    for (const type of events) at = nextAgent(at, { type });
    at = nextAgent(at, { type: 'COMMITTED', waits });
    saved = saveAgent(at);
    expect(restoreAgent(saved, VERSION).value).toEqual(at.value);
    expect(at.value).toEqual(waits === null ? 'idle' : { waiting: waits });
  }
});

test('an event that the state does not accept is an error and not ignored', () => {
  expect(() => nextAgent(newAgent(), { type: 'COMMITTED', waits: null })).toThrow(
    'COMMITTED is not accepted in idle',
  );
});

test('the steps that are kept are those of XState, whatever came before', () => {
  const types = [
    'PINNED',
    'PROMPT_READY',
    'OVER_BUDGET',
    'COMPACTED',
    'OVERFLOWED',
    'MODEL_REPLIED',
    'MODEL_CALLED',
  ];
  const more = ['RETRY_DUE', 'CALLS_DONE', 'CALLS_ENDED_TURN', 'ACCEPTED', 'CORRECTED', 'REFUSED', 'ABORTED'];
  const bools = [true, false];
  const all = [
    ...[...types, ...more].map((type) => ({ type }) as AgentEvent),
    ...([null, 'delegation', 'approval', 'answer'] as const).map((waits) => ({
      type: 'COMMITTED' as const,
      waits,
    })),
    ...bools.flatMap((retryable) =>
      bools.flatMap((isAway) =>
        [0, 3, 4, 5].map((answered) => ({
          type: 'MODEL_FAILED' as const,
          failed: { retryable, isAway, answered },
        })),
      ),
    ),
  ];
  fc.assert(
    fc.property(fc.array(fc.nat(), { maxLength: 300, size: 'max' }), (picks) => {
      let plain = initialTransition(agentLifecycle)[0];
      let kept = newAgent();
      for (const pick of picks) {
        const accepted = all.filter((event) => plain.can(event));
        const event = accepted[pick % accepted.length] as AgentEvent;
        const refused = all.find((each) => !accepted.includes(each)) as AgentEvent;
        const at = kept;
        expect(() => nextAgent(at, refused)).toThrow('is not accepted');
        [plain] = transition(agentLifecycle, plain, event);
        kept = nextAgent(kept, event);
        expect([kept.value, [...kept.tags]]).toEqual([plain.value, [...plain.tags]]);
      }
    }),
    { numRuns: 30 },
  );
});

test('every state at rest is restored unchanged, also from a snapshot of an earlier version', () => {
  for (const value of ['idle', { waiting: 'answer' }, { waiting: 'approval' }, { waiting: 'delegation' }]) {
    for (const saved of [JSON.stringify({ value }), text({ value })]) {
      const snapshot = restoreAgent(saved, VERSION - 1);
      expect(snapshot).toMatchObject({ value, status: 'active' });
      expect(snapshot.children).toEqual({});
    }
  }
});

test.each<[string, string]>([
  ['what is not JSON', '{"value":'],
  ['nothing', 'null'],
  ['a list', '[]'],
  ['a state nobody knows', text({ value: 'dancing' })],
  ['a state in the middle of a turn', text({ value: { working: 'streaming' } })],
  ['children', text({ children: { x: { snapshot: {}, src: 'evil' } } })],
  ['a reference in place of a number', text({}, { turns: { xstate$$type: 1, id: 'x' } })],
  ['a reference beside the numbers', text({}, { ref: { xstate$$type: 1, id: 'x' } })],
  ['a marker at the top', text({ xstate$$type: 1, id: 'x' })],
  ['a key too many', text({ status: 'error' })],
  ['a key too few', JSON.stringify({ context: { turns: 1, steps: 0, tries: 0 } })],
  ['a state of another machine', JSON.stringify({ value: 'paused' })],
  ['fractions of turns', text({}, { turns: 1.5 })],
  ['less than no turns', text({}, { turns: -1 })],
  ['steps at rest', text({}, { steps: 2 })],
  ['a prototype', '{"value":"idle","context":{"turns":1,"steps":0,"tries":0},"__proto__":{"x":1}}'],
])('%s is refused as corrupt', (_, saved) => {
  expect(corrupt(saved).code).toBe('actor_corrupt');
});

test('a snapshot of a newer machine is refused, with what to do', () => {
  const error = corrupt(text({}), VERSION + 1);
  expect(error.code).toBe('actor_newer');
  expect(error.message).toContain('Upgrade');
});

test('any stored JSON is restored whole or refused, without any other error', () => {
  fc.assert(
    fc.property(fc.json(), (saved) => {
      try {
        const { value } = restoreAgent(saved, VERSION);
        expect(JSON.parse(saved)).toMatchObject({ value });
      } catch (error) {
        expect(error).toBeInstanceOf(TroupeError);
      }
    }),
    { numRuns: 500 },
  );
});
