import { expect, test } from 'vitest';
import { createApp } from '../../src/gateway/index.ts';
import { openTroupe } from '../support/mode.ts';

const SYSTEM = { kind: 'system', id: 'system', name: 'System' };

/** An export with a history of its own, as another Troupe would write it. */
function* exported(...bodies: [kind: string, body: object][]): Generator<string> {
  yield `${JSON.stringify({ troupe: 1, conversation: 'run' })}\n`;
  for (const [index, [kind, body]] of bodies.entries()) {
    yield `${JSON.stringify({ id: `e${index}`, author: SYSTEM, to: [], kind, body, at: 1 })}\n`;
  }
}

function task(delegation: string, text: string): object {
  const [home, thread] = ['run', `run.${delegation}`];
  const where = { home, thread, root: home, group: delegation, join: 'all', chain: ['p'] };
  return { delegation, how: 'delegate', delegator: 'p', assignee: 'p', task: text, ...where };
}

async function* streamed(lines: Iterable<string>): AsyncGenerator<string> {
  yield* lines;
}

test('the state of a conversation is folded from its log: mode, phase, open delegations', async () => {
  await using troupe = await openTroupe({
    agents: [{ id: 'p', provider: 'scripted', script: { rules: [{ reply: 'ok' }] } }],
  });
  const app = createApp(troupe, {});
  const lines = exported(
    ['message', { content: 'begin' }],
    ['mode.changed', { mode: 'run' }],
    ['phase.changed', { phase: 'build', instructions: '' }],
    ['delegation.opened', task('d1', 'one')],
    ['delegation.opened', task('d2', 'two')],
    ['delegation.completed', { delegation: 'd1', outcome: 'done', result: 'done' }],
  );
  await troupe.import(streamed(lines), { conversation: 'run' });
  const response = await app.request('/api/conversations/run');
  expect(await response.json()).toEqual({
    id: 'run',
    head: 6,
    state: 'open.run',
    mode: 'run',
    phase: 'build',
    openDelegations: 1,
  });
  expect((await app.request('/api/conversations/nobody')).status).toBe(404);
});
