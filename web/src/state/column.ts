import { effect, signal } from '@preact/signals';
import { route, type Route } from './route.ts';

/** Narrow screens show one column at a time. */
export const COLUMNS = [
  { name: 'who', label: 'Who' },
  { name: 'what', label: 'What' },
  { name: 'why', label: 'Why' },
] as const;

/** A person who opens a shared address wants to see its selection. */
function columnOf({ turn, event, agent, tab }: Route): 'what' | 'why' {
  return turn !== null || event !== null || agent !== null || tab !== 'state' ? 'why' : 'what';
}

export const column = signal<(typeof COLUMNS)[number]['name']>(columnOf(route.peek()));

let before = route.peek();
effect(() => {
  const now = route.value;
  const isChosen = (['turn', 'event', 'agent', 'tab'] as const).some((name) => now[name] !== before[name]);
  if (now.conversation === before.conversation && isChosen && columnOf(now) === 'why') column.value = 'why';
  else if (now.conversation !== before.conversation) column.value = columnOf(now);
  before = now;
});
