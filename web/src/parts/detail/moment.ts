import type { Transitions } from '../../../../src/library/projection/chart.ts';
import { states } from '../../state/live.ts';
import { route } from '../../state/route.ts';
import { chosen } from './chosen.ts';
import { isWithin } from './chart-paths.ts';

/** The state of a machine at some time. */
export interface Moment {
  /** State path, such as `working.streaming`. */
  state: string;
  /** The event that led to the state, if known. */
  event: string | null;
  since: number;
  doing: readonly string[];
}

/** A transition that is possible in a state. */
export interface Legal {
  event: string;
  guard: string | null;
  target: string;
}

/** Whether something keeps the agent from taking turns. */
export function isAway({ state }: Moment): boolean {
  return state === 'paused' || state === 'failed' || state === 'retired';
}

/** The live state if it is newer, else the actor's status from the server, else the state from the log. */
export function momentOf(): Moment {
  const { agent } = chosen.value;
  const since = agent?.since.at ?? 0;
  const now = route.value.at === null ? presentMoment(since) : null;
  return now ?? { state: agent?.state ?? 'idle', event: null, since, doing: [] };
}

function presentMoment(since: number): Moment | null {
  const { agentId, actor } = chosen.value;
  const newest = agentId === null ? undefined : states.value.get(agentId);
  const last = actor?.last ?? null;
  if (newest && newest.at >= (last?.at ?? 0)) {
    return { state: newest.state, event: newest.event, since: newest.at, doing: newest.doing };
  }
  return actor && { state: actor.state, event: last?.event ?? null, since: last?.at ?? since, doing: [] };
}

/** What the machine accepts now, by the actor's status, else by its chart. */
export function legalAt(chart: Transitions | null, { state }: Moment): readonly Legal[] {
  const { actor } = chosen.value;
  return route.value.at === null && actor?.state === state ? actor.legal : legalIn(chart, state);
}

function legalIn(chart: Transitions | null, state: string): Legal[] {
  if (!chart) return [];
  const drawn = chart.edges.filter(({ from }) => isWithin(state, from));
  const listed = chart.anywhere.filter((each) => each.in === '' || isWithin(state, each.in));
  return [...drawn.map(({ event, guard, to }) => ({ event, guard, target: to })), ...listed];
}
