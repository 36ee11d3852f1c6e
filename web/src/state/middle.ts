import { computed } from '@preact/signals';
import { isFiltered } from './filter.ts';
import { type List, route } from './route.ts';

/** What the middle column shows. A filter shows turns or events, because a conversation, tree or graph with gaps would mislead. */
export const middle = computed<List>(() => {
  const { list, kind, problems } = route.value;
  const hasNoHoles = list === 'talk' || list === 'tree' || list === 'graph';
  if (!hasNoHoles || !isFiltered(route.value)) return list;
  return problems || kind === 'context' ? 'turns' : 'events';
});
