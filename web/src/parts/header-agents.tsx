import { computed } from '@preact/signals';
import { NEED, type ShownCondition, shownCondition } from '../../../src/library/projection/needs.ts';
import { CONDITION_WORDS } from '../shared/condition.tsx';
import { plural } from '../shared/format.ts';
import { Go } from '../shared/go.tsx';
import { agentsByNeed } from '../state/selection.ts';

const counts = computed(() => {
  const groups = Map.groupBy(agentsByNeed.value, shownCondition);
  return NEED.flatMap((condition): { condition: ShownCondition; ids: string[] }[] => {
    const ids = groups.get(condition)?.map(({ id }) => id) ?? [];
    return ids.length > 0 ? [{ condition, ids }] : [];
  });
});

/** Number of agents per condition. Failures come first; nothing else here is red. */
export function HeaderAgents() {
  const total = agentsByNeed.value.length;
  if (total === 0) return null;
  return (
    <span class={`chip ${counts.value[0]?.condition === 'failed' ? 'chip-failed' : ''}`}>
      <Go to={{ by: '', problems: false, kind: '', q: '' }}>{plural(total, 'agent')}</Go>
      {counts.value.map(({ condition, ids }) => (
        <Go
          key={condition}
          class={`header-${condition}`}
          to={{
            by: ids.length > 20 ? '' : ids.join(','),
            problems: condition === 'failed',
            agent: ids[0] ?? null,
          }}
        >
          {ids.length} {CONDITION_WORDS[condition]}
        </Go>
      ))}
    </span>
  );
}
