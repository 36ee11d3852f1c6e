import { expect, test } from 'vitest';
import { applyCompactionEvent } from '../../src/context/compaction/apply.ts';
import { createView } from '../../src/context/index.ts';
import type { AgentId, EventDraftOf, EventId } from '../../src/events/index.ts';
import { SECRET } from '../support/log-player.ts';

const OF_AGENT = { author: { kind: 'agent', id: 'bo', name: 'Bo' }, to: [] } as const;

function compaction(epoch: number, id: string | null): EventDraftOf<'baseline'> {
  const tokens = { before: 900, after: 500, trigger: 800 };
  const adopts = { compaction: id, upTo: 5, reason: 'over_budget', tokens };
  const body = { epoch, reason: 'compaction: over_budget', adopts };
  return {
    ...OF_AGENT,
    id: `b${epoch}` as EventId,
    kind: 'baseline',
    body,
  } as unknown as EventDraftOf<'baseline'>;
}

test('a prompt names the summary in force, however often the running turn was shortened since', () => {
  const view = createView('bo' as AgentId, SECRET);
  applyCompactionEvent(view, compaction(1, 'c1'));
  applyCompactionEvent(view, compaction(2, 'c2'));
  for (let epoch = 3; epoch <= 40; epoch++) applyCompactionEvent(view, compaction(epoch, null));
  const named = view.cuts.map(({ event }) => event);
  expect(named).toHaveLength(16);
  expect(named[0]).toBe('b2');
  expect(named.at(-1)).toBe('b40');
});
