import '../../style/detail-state.css';
import { useEffect, useState } from 'preact/hooks';
import type { Transitions } from '../../../../src/library/projection/chart.ts';
import { clock, day, duration } from '../../shared/format.ts';
import { waitOf } from '../../state/inbox.ts';
import { route } from '../../state/route.ts';
import { chosen } from './chosen.ts';
import { lastEdge } from './chart-paths.ts';
import { legalAt, type Moment } from './moment.ts';

const TICK_MS = 500;
/** Most next states that are named; the statechart has all. */
const MAX_NEXT = 4;

/** The machine in one line: the previous state, the current one and since when, and the possible next ones. */
export function StateNow({ chart, moment }: { chart: Transitions | null; moment: Moment }) {
  const { state, event, doing } = moment;
  const from = chart === null ? null : lastEdge(chart.edges, moment);
  const next = nextStates(chart, moment);
  const { agent } = chosen.value;
  const wait = route.value.at === null && agent ? waitOf(agent) : null;
  return (
    <ol class={`strip strip-${agent?.condition ?? 'idle'}`} aria-label="State">
      {event !== null && (
        <li class="strip-before" title={`${event} led to the present state`}>
          {from === null ? event : nameOf(from.from)}
        </li>
      )}
      <li class="strip-now" aria-current="step">
        {wait === null ? (
          <>
            <strong>{state.split('.').join(' › ')}</strong>
            {doing.length > 0 && <> calling {doing.join(', ')}</>} <Since moment={moment} />
          </>
        ) : (
          <strong>{wait}</strong>
        )}
        {agent?.condition === 'failed' && state !== 'failed' && <>; its last turn failed</>}
      </li>
      {next.length > 0 && (
        <li class="strip-next">
          <span class="unseen">possible next: </span>
          {next.slice(0, MAX_NEXT).map(({ name, title }) => (
            <span key={name} title={title}>
              {name}
            </span>
          ))}
          {next.length > MAX_NEXT && <span>+{next.length - MAX_NEXT}</span>}
        </li>
      )}
    </ol>
  );
}

function Since({ moment: { state, since } }: { moment: Moment }) {
  const isBusy = route.value.at === null && /^(working|backoff)/.test(state);
  const now = useNow(isBusy);
  if (since <= 0) return null;
  if (isBusy) return <>for {duration(now - since)}</>;
  const date = day(since, now);
  return <>since {date.includes(':') ? clock(since) : `${date}, ${clock(since)}`}</>;
}

/**
 * The possible next states, each once, in the order of the machine. Those that a person causes are left out: they are among
 * the commands.
 */
function nextStates(chart: Transitions | null, moment: Moment): { name: string; title: string }[] {
  const found = new Map<string, string[]>();
  for (const { event, guard, target } of legalAt(chart, moment)) {
    if (target === moment.state || target === '') continue;
    const title = guard === null ? event : `${event} if ${guard}`;
    found.set(nameOf(target), [...(found.get(nameOf(target)) ?? []), title]);
  }
  return [...found].map(([name, titles]) => ({ name, title: titles.join(', ') }));
}

function nameOf(path: string): string {
  return path.split('.').at(-1) ?? path;
}

/** The current time. It advances only while something runs. */
function useNow(isRunning: boolean): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (!isRunning) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, [isRunning]);
  return now;
}
