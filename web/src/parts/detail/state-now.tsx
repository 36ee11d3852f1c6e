import { useEffect, useState } from 'preact/hooks';
import { clock, duration } from '../../shared/format.ts';
import { waitOf } from '../../state/inbox.ts';
import { route } from '../../state/route.ts';
import { chosen } from './chosen.ts';

/** A moment of a machine. */
export interface Moment {
  /** State path, such as `working.streaming`. */
  state: string;
  /** The event that led to the state, if known. */
  event: string | null;
  since: number;
  /** Tools being called. */
  doing: readonly string[];
}

const TICK_MS = 500;

/** The chart as text. */
export function StateNow({ moment }: { moment: Moment }) {
  const { actor, agent } = chosen.value;
  const isLive = route.value.at === null;
  const can = isLive ? (actor?.can ?? []) : [];
  const wait = isLive && agent ? waitOf(agent) : null;
  return (
    <p class="state-now">
      {wait === null ? <Machine moment={moment} isLive={isLive} /> : <strong>{wait}</strong>}
      {can.length > 0 && <>; can: {can.join(', ')}</>}
    </p>
  );
}

function Machine({ moment, isLive }: { moment: Moment; isLive: boolean }) {
  const { state, event, since, doing } = moment;
  const isBusy = isLive && /^(working|backoff)/.test(state);
  const now = useNow(isBusy);
  const isFailed = chosen.value.agent?.condition === 'failed' && state !== 'failed';
  return (
    <>
      <strong>
        {state.split('.').map((part, index) => (
          <>
            {index > 0 && <span class="state-step"> › </span>}
            {part}
          </>
        ))}
      </strong>
      {doing.length > 0 && <> calling {doing.join(', ')}</>}
      {since > 0 && (isBusy ? <> for {duration(now - since)}</> : <> since {clock(since)}</>)}
      {isFailed && <>; its last turn failed</>}
      {event !== null && (
        <>
          ; entered by <code>{event}</code>
        </>
      )}
    </>
  );
}

/** The current time, which advances only while something runs. */
function useNow(isRunning: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isRunning) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, [isRunning]);
  return Math.max(now, isRunning ? now : 0);
}
