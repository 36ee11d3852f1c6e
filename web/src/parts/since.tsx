import type { PERIODS } from '../state/inbox.ts';
import { go } from '../state/route.ts';

const WORDS: Record<keyof typeof PERIODS, string> = {
  hour: 'Last hour',
  day: 'Last 24 hours',
  week: 'Last 7 days',
  month: 'Last 30 days',
};

/** The filter by time, of the list and of the search. */
export function Since({ value }: { value: string }) {
  return (
    <select aria-label="Since" value={value} onChange={(event) => go({ since: event.currentTarget.value })}>
      <option value="">Any time</option>
      {Object.entries(WORDS).map(([period, words]) => (
        <option key={period} value={period}>
          {words}
        </option>
      ))}
    </select>
  );
}
