import fc from 'fast-check';
import { createActor } from 'xstate';
import { expect, test } from 'vitest';
import { TroupeError } from '../../src/errors.ts';
import { AGENT_MACHINE_VERSION, agentLifecycle } from '../../src/machines/agent-lifecycle.ts';
import { restoreAgent, saveSettled } from '../../src/machines/snapshot.ts';

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

test('what a settled turn saves is restored as a machine at rest with one turn more, and works', () => {
  let saved: string | null = null;
  for (let turns = 1; turns <= 3; turns++) {
    const actor = createActor(agentLifecycle, { snapshot: restoreAgent(saved, VERSION) }).start();
    actor.send({ type: 'PINNED' });
    actor.send({ type: 'PROMPT_READY' });
    actor.send({ type: 'MODEL_REPLIED' });
    actor.send({ type: 'ACCEPTED' });
    const waits = turns === 2 ? 'approval' : null;
    saved = saveSettled(actor.getSnapshot(), waits);
    actor.send({ type: 'COMMITTED', waits });
    // The snapshot is written before the machine hears of it; both must say the same.
    const { value, context } = actor.getSnapshot();
    expect(JSON.parse(saved)).toEqual({ value, context });
    expect(context.turns).toBe(turns);
    expect(restoreAgent(saved, VERSION)).toMatchObject({ value, context });
  }
});

test('every state at rest comes back as it was', () => {
  for (const value of ['idle', { waiting: 'answer' }, 'paused', 'failed', 'retired']) {
    const snapshot = restoreAgent(text({ value }), VERSION);
    expect(snapshot).toMatchObject({ value, status: 'active', context: { turns: 1 } });
    expect(snapshot.children).toEqual({});
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
  ['a key too few', JSON.stringify({ value: 'idle' })],
  ['fractions of turns', text({}, { turns: 1.5 })],
  ['less than no turns', text({}, { turns: -1 })],
  ['steps at rest', text({}, { steps: 2 })],
  ['a prototype', '{"value":"idle","context":{"turns":1,"steps":0,"tries":0},"__proto__":{"x":1}}'],
])('%s is refused as corrupt', (_, saved) => {
  expect(corrupt(saved).code).toBe('actor_corrupt');
});

test('a snapshot of a newer machine is refused, and says what to do', () => {
  const error = corrupt(text({}), VERSION + 1);
  expect(error.code).toBe('actor_newer');
  expect(error.message).toContain('Upgrade');
});

test('whatever JSON is stored, it is restored whole or refused, and never throws anything else', () => {
  fc.assert(
    fc.property(fc.json(), (saved) => {
      try {
        const { value, context } = restoreAgent(saved, VERSION);
        expect(JSON.parse(saved)).toEqual({ value, context });
      } catch (error) {
        expect(error).toBeInstanceOf(TroupeError);
      }
    }),
    { numRuns: 500 },
  );
});
