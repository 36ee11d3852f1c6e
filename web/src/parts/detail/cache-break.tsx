import '../../style/detail-cache.css';
import type { PromptDiff } from '../../../../src/library/troupe.ts';
import { api } from '../../state/api.ts';
import { useFetched } from '../../state/fetched.ts';
import { shown } from '../../state/live.ts';
import { route } from '../../state/route.ts';
import { turnLabel } from './chosen.ts';
import { EventLink } from './event-link.tsx';

interface CacheBreakProps {
  broke: NonNullable<PromptDiff['broke']>;
  before: string | null;
}

const MOST_EVENTS = 500;

/** Where the provider's cache of the previous prompt ends, why, and which event is the cause. */
export function CacheBreak({ broke, before }: CacheBreakProps) {
  const { layer, message, event, cause } = broke;
  const seq = useSeqOf(event, before);
  return (
    <p class="prompt-broke">
      <span class="prompt-broke-mark" aria-hidden="true" />
      <span>
        <strong>Cache broke</strong>
        {before !== null && ` since ${turnLabel(before)}`} in {layer}
        {message !== null && message > 0 && `, message ${message}`}:{' '}
        {event === null ? cause : cause.replace(` (${event})`, '')}
        {seq !== null && (
          <>
            {' '}
            by <EventLink seq={seq} label={`event ${seq}`} />
          </>
        )}
        {seq === null && event !== null && <code> {event}</code>}
      </span>
    </p>
  );
}

/** Records name events by id, the page by seq. The event that broke the cache lies between the two turns. */
function useSeqOf(event: string | null, before: string | null): number | null {
  const { conversation } = route.value;
  const from = shown.value?.turns.find(({ id }) => id === before)?.from ?? null;
  const key =
    event === null || from === null || conversation === null ? null : `events ${from} ${MOST_EVENTS}`;
  const found = useFetched(key, null, () =>
    api.events(conversation ?? '', { after: (from ?? 1) - 1, limit: MOST_EVENTS }),
  );
  const events = found.state === 'there' ? found.value.events : [];
  return events.find(({ id }) => id === event)?.seq ?? null;
}
