import type { PERIODS } from '../state/inbox.ts';
import { Choice } from '../shared/choice.tsx';
import { go } from '../state/route.ts';

const CHOICES: [keyof typeof PERIODS | '', string][] = [
  ['', 'Any time'],
  ['hour', 'Last hour'],
  ['day', 'Last 24 hours'],
  ['week', 'Last 7 days'],
  ['month', 'Last 30 days'],
];

/** The filter by time, of the list and of the search. */
export function Since({ value }: { value: string }) {
  return <Choice label="Since" of={CHOICES} value={value} onChange={(since) => go({ since })} />;
}
