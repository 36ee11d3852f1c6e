import { expect, test } from 'vitest';
import { inOrder, says } from '../support/engine-models.ts';
import { openStage } from '../support/engine-stage.ts';

test('300 agents answer in one conversation, each once', async () => {
  const AGENTS = 300;
  const GROUP = 100;
  const model = inOrder(says('present'));
  const ids = Array.from({ length: AGENTS }, (_, index) => `agent-${index}`);
  const stage = await openStage({ agents: ids.map((id) => ({ id, model, join: 'fresh' })) });
  for (let at = 0; at < AGENTS; at += GROUP) await stage.say('c', 'roll call', ids.slice(at, at + GROUP));
  await stage.quiet();
  expect(model.requests).toHaveLength(AGENTS);
  const replies = (await stage.events('c')).filter(({ id }) => id.endsWith(':reply'));
  expect(new Set(replies.map(({ author }) => author.id)).size).toBe(AGENTS);
  expect(await stage.check('c')).toEqual([]);
});
