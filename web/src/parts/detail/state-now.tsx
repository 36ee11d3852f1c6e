import { useEffect, useState } from 'preact/hooks';
import { clock, duration } from '../../shared/format.ts';
import { route } from '../../state/route.ts';
import { chosen } from './chosen.ts';

/** Where a machine is. */
export interface Moment {
  /** State path, as `working.streaming`. */
  state: string;
  /** What brought it there, where that is known. */
  event: string | null;
  since: number;
  /** Tools that are being called. */
  doing: readonly string[];
}

const TICK_MS = 500;

/** The chart in words. */
export function StateNow({ moment }: { moment: Moment }) {
  const { state, event, since, doing } = moment;
  const { actor, agent } = chosen.value;
  const isLive = route.value.at === null;
  const isBusy = isLive && /^(working|backoff)/.test(state);
  const now = useNow(isBusy);
  const path = state.split('.');
  const can = isLive ? (actor?.can ?? []) : [];
  return (
    <p class="state-now">
      <strong>
        {path.map((part, index) => (
          <>
            {index > 0 && <span class="state-step"> › </span>}
            {part}
          </>
        ))}
      </strong>
      {doing.length > 0 && <> calling {doing.join(', ')}</>}
      {since > 0 && (isBusy ? <> for {duration(now - since)}</> : <> since {clock(since)}</>)}
      {agent?.condition === 'failed' && state !== 'failed' && <>; its last turn failed</>}
      {event !== null && (
        <>
          ; entered by <code>{event}</code>
        </>
      )}
      {can.length > 0 && <>; can: {can.join(', ')}</>}
    </p>
  );
}

/** The time, told on only while somebody looks at something that runs. */
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
