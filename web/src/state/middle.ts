import { computed } from '@preact/signals';
import { isFiltered } from './filter.ts';
import { type List, route } from './route.ts';

/** What the middle column shows. A filter looks for turns or events, since a conversation with holes is none. */
export const middle = computed<List>(() => {
  const { list, kind, problems } = route.value;
  if (list !== 'talk' || !isFiltered(route.value)) return list;
  return problems || kind === 'context' ? 'turns' : 'events';
});
