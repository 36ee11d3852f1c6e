import { computed } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { clock, duration, plural } from '../shared/format.ts';
import { connection } from '../state/connection.ts';
import { past } from '../state/live.ts';
import { goLive, isPast, pastProblem, shownSeq } from '../state/past.ts';
import { route } from '../state/route.ts';
import { head, selectedAgent } from '../state/selection.ts';
import { shownCondition } from '../../../src/library/projection/needs.ts';
import { CONDITION_WORDS } from '../shared/condition.tsx';

/** Warnings about the whole page: it shows the past, or the server does not respond. */
export function Banners() {
  const state = connection.value;
  return (
    <div class="banners">
      {state.state === 'lost' && (
        <p class="banner banner-lost" role="status">
          <b>Not connected</b> since {clock(state.since)}: {state.message}.{' '}
          {state.heardAt !== null && (
            <>
              What is shown is <Age of={state.heardAt} /> old
              {head.value > 0 && `, as of seq ${head.value}`}.{' '}
            </>
          )}
          Nothing can be changed meanwhile; the page tries again by itself.
        </p>
      )}
      {isPast.value && (
        <p class="banner banner-past" role="status">
          <b>The past.</b>{' '}
          {shownSeq.value < (route.value.at ?? 0) &&
            past.value !== null &&
            `There is no event ${route.value.at}: the last is ${head.value}. `}
          The page shows the state after event {shownSeq.value}
          {past.value && past.value.at > 0 && `, ${clock(past.value.at)}`}.
          {pastProblem.value !== null && ` ${pastProblem.value}`}{' '}
          <button type="button" class="button" onClick={goLive}>
            Go live
          </button>
        </p>
      )}
    </div>
  );
}

const TICK_MS = 1_000;

function ageInSeconds(ms: number): string {
  return ms < 60_000 ? plural(Math.max(0, Math.round(ms / 1_000)), 'second') : duration(ms);
}

/** Not announced to screen readers, because it changes every second. */
function Age({ of: at }: { of: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  return <span aria-live="off">{ageInSeconds(now - at)}</span>;
}

/** Computed, so that other changes of the agent announce nothing. */
const condition = computed(() => {
  const agent = selectedAgent.value;
  return agent ? `${agent.name}: ${CONDITION_WORDS[shownCondition(agent)]}` : '';
});

/** Announces the condition of the selected agent to screen readers. */
export function Spoken() {
  return (
    <p class="unseen" aria-live="polite">
      {condition.value}
    </p>
  );
}
