import type { AgentId, Event, Usage } from '../../events/index.ts';
import { type AgentView, MAX_AGENTS, type Projection, type TokenCounts, type Totals } from './model.ts';

type ListName = 'turns' | 'arrows' | 'talk' | 'tasks' | 'compactions' | 'forks' | 'links';

/**
 * A copy-on-write successor of a projection. A list is copied before the first write, and its items are replaced, never
 * changed, so the older projection stays as it is.
 */
export interface Draft {
  readonly next: Projection;
  /** The parts that are already copied. */
  readonly owned: Set<ListName | 'agents' | 'totals'>;
  /** Agents whose condition may change with the current event. */
  readonly touched: Set<AgentId>;
  /** Number of agents; null until first needed. */
  agents: number | null;
  /** Number of searches for links, and, after many searches, a table of their places. */
  searches: number;
  linkAt: Map<string, number> | null;
}

export function draftOf(projection: Projection): Draft {
  return {
    next: { ...projection },
    owned: new Set(),
    touched: new Set(),
    agents: null,
    searches: 0,
    linkAt: null,
  };
}

/** A list of the draft, copied so that it can be written to. */
export function own<K extends ListName>({ next, owned }: Draft, name: K): Projection[K] {
  if (!owned.has(name)) {
    next[name] = next[name].slice() as Projection[K];
    owned.add(name);
  }
  return next[name];
}

/** Drops the oldest items of a list that is too long: several at once, because each drop moves all remaining items. */
export function keepNewest(list: unknown[], most: number): void {
  if (list.length > most) list.splice(0, list.length - most + Math.floor(most / 20));
}

export function ownTotals({ next, owned }: Draft): Totals {
  if (!owned.has('totals')) {
    next.totals = { ...next.totals };
    owned.add('totals');
  }
  return next.totals;
}

const AGENT_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

export function isAgentId(id: unknown): id is AgentId {
  return typeof id === 'string' && AGENT_ID.test(id);
}

export function agentOf({ next }: Draft, id: string): AgentView | null {
  return Object.hasOwn(next.agents, id) ? (next.agents[id] ?? null) : null;
}

/** The agent of this id, added if it is new. Null if the id is invalid or there are too many agents. */
export function meetAgent(draft: Draft, id: string, { seq, at }: Event): AgentView | null {
  const known = agentOf(draft, id);
  if (known) {
    draft.touched.add(known.id);
    return known;
  }
  if (!isAgentId(id)) return null;
  draft.agents ??= Object.keys(draft.next.agents).length;
  if (draft.agents >= MAX_AGENTS) return null;
  draft.agents += 1;
  const agent: AgentView = {
    id: id as AgentId,
    name: id,
    condition: 'idle',
    state: 'idle',
    parked: null,
    away: null,
    since: { seq, at },
    turn: null,
    lastTurn: null,
    pending: [],
    seen: 0,
    turns: 0,
    failed: 0,
    tokens: NO_TOKENS,
    problem: null,
  };
  ownAgents(draft)[id] = agent;
  draft.touched.add(agent.id);
  return agent;
}

/** Changes a known agent. The object stays the same if no value differs. */
export function changeAgent(draft: Draft, id: string, change: Partial<AgentView>): void {
  const agent = agentOf(draft, id);
  if (!agent) return;
  draft.touched.add(agent.id);
  const keys = Object.keys(change) as (keyof AgentView)[];
  if (keys.every((key) => Object.is(agent[key], change[key]))) return;
  ownAgents(draft)[id] = { ...agent, ...change };
}

function ownAgents({ next, owned }: Draft): Projection['agents'] {
  if (!owned.has('agents')) {
    next.agents = { ...next.agents };
    owned.add('agents');
  }
  return next.agents;
}

export const NO_TOKENS: TokenCounts = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

export function addTokens(a: TokenCounts, b: TokenCounts): TokenCounts {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
  };
}

/** Token counts of a usage. A count that the provider did not report is 0. */
export function countsOf({
  input = 0,
  output = 0,
  cacheRead = 0,
  cacheWrite = 0,
}: Partial<Usage>): TokenCounts {
  return { input, output, cacheRead, cacheWrite };
}
