import { computed } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { clock, duration } from '../shared/format.ts';
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
          {state.heardAt !== null && <Age of={state.heardAt} />}
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
/** Age from which what is shown counts as old, ms. */
const OLD_MS = 3_000;

/** How old what is shown is. Not announced to screen readers, because it changes every second. */
function Age({ of: at }: { of: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  const ms = now - at;
  const age = ms < 60_000 ? `${Math.floor(ms / 1_000)} seconds` : duration(ms);
  const words = [
    ...(ms < OLD_MS ? [] : [`${age} old`]),
    ...(head.value > 0 ? [`as of seq ${head.value}`] : []),
  ];
  if (words.length === 0) return null;
  return <span aria-live="off">What is shown is {words.join(', ')}. </span>;
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
