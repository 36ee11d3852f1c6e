import { expect, test } from 'vitest';
import { fillHandoff, type HandoffSources } from '../../src/actors/tasks/apply-tool-request.ts';
import { type AgentId, HandoffDraft, type HandoffSummary } from '../../src/events/index.ts';
import type { RequestOf } from '../../src/tools/tool.ts';
import { asks, inOrder, says } from '../support/engine-models.ts';
import { logOf, openStage } from '../support/engine-stage.ts';

const EXTRACTED = HandoffDraft.parse({ goal: 'extracted', next: 'from the log' }) as HandoffSummary;
const SUMMARY = HandoffDraft.parse({ goal: 'summarised', next: 'from the model' }) as HandoffSummary;

function request(summary: object, fill?: RequestOf<'handoff'>['fill']): RequestOf<'handoff'> {
  return { kind: 'handoff', to: 'cy' as AgentId, summary: HandoffDraft.parse(summary), fill };
}

function sources(more: Partial<HandoffSources> = {}) {
  const warnings: unknown[] = [];
  const given: HandoffSources = {
    from: 'bo' as AgentId,
    events: async () => [],
    extract: () => EXTRACTED,
    onWarning: (error) => void warnings.push(error),
    ...more,
  };
  return { given, warnings };
}

test('if configured, a model writes the summary, except for the fields that the agent wrote', async () => {
  const { given } = sources({ summarise: async () => SUMMARY });
  const filled = await fillHandoff(request({ state: 'half' }, 'summarise'), given);
  expect(filled).toMatchObject({
    goal: 'summarised',
    next: 'from the model',
    state: 'half',
    by: 'compactor',
  });
  const own = await fillHandoff(request({ next: 'mine' }, 'summarise'), given);
  expect(own).toMatchObject({ goal: 'summarised', next: 'mine' });
});

test.each<[string, HandoffSources['summarise'], number]>([
  ['is not there', undefined, 0],
  ['gives nothing', async () => null, 0],
  ['gives no summary', async () => ({ goal: '' }) as HandoffSummary, 0],
  [
    'throws',
    async () => {
      throw new Error('overloaded');
    },
    1,
  ],
])('a model that %s is made up for by extraction', async (_, summarise, warned) => {
  const { given, warnings } = sources({ summarise });
  expect(await fillHandoff(request({}, 'summarise'), given)).toMatchObject({
    goal: 'extracted',
    by: 'extraction',
  });
  expect(warnings).toHaveLength(warned);
});

test('a summary with a goal reads no log and calls no model', async () => {
  const never = () => {
    throw new Error('asked');
  };
  const { given } = sources({ events: never, extract: never, summarise: never });
  const filled = await fillHandoff(request({ goal: 'mine' }, 'summarise'), given);
  expect(filled).toMatchObject({ goal: 'mine', next: '', by: 'agent' });
});

test('the completed summary is in the settled effect, so that a replay gives the same handoff', async () => {
  const stage = await openStage({
    agents: [
      { id: 'bo', model: inOrder(asks(['handoff', { to: 'cy' }])), tools: ['handoff'] },
      { id: 'cy', model: inOrder(says('mine now')) },
    ],
  });
  await stage.say('c', 'please sort the mail', ['bo']);
  await stage.quiet();
  const handoff = (await stage.events('c')).find(({ kind }) => kind === 'handoff');
  const claim = { argsHash: '', by: 'test', at: 0 };
  const { record } = await stage.store.startEffect(logOf('c').tenant, 'c:bo:1/0.0', claim);
  if (record.status !== 'settled') throw new Error(`the effect is ${record.status}`);
  const body = { summary: { goal: 'please sort the mail', by: 'extraction' } };
  const { effects } = JSON.parse(record.data) as { effects: { events: { body: object }[] } };
  expect(effects.events).toMatchObject([{ to: ['cy'], kind: 'handoff', body }]);
  expect(handoff?.body).toEqual(effects.events[0]?.body);
  expect(await stage.check('c')).toEqual([]);
});
