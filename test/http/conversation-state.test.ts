import { expect, test } from 'vitest';
import { createApp } from '../../src/http/api/index.ts';
import { EventDraft } from '../../src/events/index.ts';
import { inOrder, says } from '../support/engine-models.ts';
import { logOf, openStage } from '../support/engine-stage.ts';

const SYSTEM = { kind: 'system', id: 'system', name: 'System' };

function task(delegation: string, text: string): object {
  const [home, thread] = ['run', `run.${delegation}`];
  const where = { home, thread, root: home, group: delegation, join: 'all', chain: ['p'] };
  return { delegation, how: 'delegate', delegator: 'p', assignee: 'p', task: text, ...where };
}

test('the state of a conversation is folded from its log: mode, phase, open delegations', async () => {
  const stage = await openStage({ agents: [{ id: 'p', model: inOrder(says('ok')) }] });
  const app = createApp(stage.troupe, {});
  const bodies: [kind: string, body: object][] = [
    ['message', { content: 'begin' }],
    ['mode.changed', { mode: 'run' }],
    ['phase.changed', { phase: 'build', instructions: '' }],
    ['delegation.opened', task('d1', 'one')],
    ['delegation.opened', task('d2', 'two')],
    ['delegation.ended', { delegation: 'd1', outcome: 'done', result: 'done' }],
  ];
  const drafts = bodies.map(([kind, body], index) =>
    EventDraft.parse({ id: `e${index}`, author: SYSTEM, to: [], kind, body }),
  );
  await stage.store.append(
    logOf('run'),
    drafts.map((draft) => ({ draft, at: 1, tokens: 1 })),
  );
  const response = await app.request('/api/conversations/run');
  expect(await response.json()).toEqual({
    id: 'run',
    head: 6,
    state: 'open.run',
    mode: 'run',
    phase: 'build',
    openDelegations: 1,
    compactions: { count: 0, running: [], requested: [], last: null },
  });
  expect((await app.request('/api/conversations/nobody')).status).toBe(404);
});
