import type { AgentId } from '../../events/index.ts';
import type { AgentCondition, AgentView, Projection, Saying, TaskView, TokenCounts } from './model.ts';
import { needOrder } from './needs.ts';
import { oneLine } from './words.ts';

/** States of a conversation, most urgent first. */
export const STANDING_STATES = ['failed', 'asks', 'running', 'waiting', 'quiet'] as const;

/**
 * `failed`: an agent cannot go on. `asks`: a person is asked. `running`: a turn runs. `waiting`: an agent was addressed
 * and has not begun, or is held. `quiet`: nothing is open. An agent that a person paused or retired is not `failed`.
 */
export type StandingState = (typeof STANDING_STATES)[number];

/** The rank of a state in the store, the most urgent highest. */
export const rankOf = (state: StandingState) => STANDING_STATES.length - 1 - STANDING_STATES.indexOf(state);

/** State of one conversation in a list: at most a few kilobytes, computed from the projection of its log. */
export interface Standing {
  state: StandingState;
  /** Since when, ms. For `quiet` the time of the last event. */
  since: number;
  /** Time of the first event, ms. */
  began: number;
  /** The most urgent agents, at most `MAX_SHOWN`. */
  agents: { id: AgentId; condition: AgentCondition }[];
  agentCount: number;
  /** The first one is the owner. At most `MAX_SHOWN`. */
  people: { id: string; name: string }[];
  /** The first message. */
  about: Saying | null;
  /** The newest message. */
  last: Saying | null;
  /** Tokens of all model calls, input and output. */
  tokens: number;
  /** US dollars for these tokens at the present prices of the agents' models. Null if a price is not known. */
  dollars: number | null;
  turns: number;
  failedTurns: number;
  /** `turn`: its last one, which a person may retry. */
  failure: { agent: AgentId; turn: string | null; code: string; message: string } | null;
  /** Open questions and approvals: their number, and the oldest one. `deadline`: the earliest of all. */
  asks: Asks | null;
}

interface Asks {
  count: number;
  /** Id of the oldest one. */
  task: string;
  at: number;
  agent: AgentId;
  kind: 'question' | 'approval';
  text: string;
  /** When it ends by itself, ms. Null: never. */
  deadline: number | null;
  /** What a decision on the approval must name. Null for a question, and if `text` does not show the whole call. */
  decide: { request: string; argsHash: string } | null;
}

/** Most agents, and most people, of a standing. */
const MAX_SHOWN = 6;

/** US dollars for the tokens of an agent. Null: its price is not known. */
export type PriceOf = (agent: AgentId, tokens: TokenCounts) => number | null;

/** Without prices a standing has no dollars. */
export function standingOf(projection: Projection, priceOf: PriceOf = () => null): Standing {
  const agents = needOrder(Object.values(projection.agents));
  const asked = projection.tasks.filter(isAsked);
  const state = stateOf(projection, agents, asked);
  const { tokens, turns, failed } = projection.totals;
  return {
    state,
    since: sinceOf(state, projection, agents, asked),
    began: projection.began,
    agents: agents.slice(0, MAX_SHOWN).map(({ id, condition }) => ({ id, condition })),
    agentCount: agents.length,
    people: projection.people.slice(0, MAX_SHOWN),
    about: projection.opening,
    last: projection.closing,
    tokens: tokens.input + tokens.output,
    dollars: dollarsOf(agents, priceOf),
    turns,
    failedTurns: failed,
    failure: failureOf(agents),
    asks: asksOf(asked),
  };
}

interface TokenPrices {
  input: number;
  cacheRead: number;
  cacheWrite: number;
  output: number;
}

/** US dollars at prices per million tokens. Some models charge more for long calls, which a sum of tokens does not show. */
export function dollarsFor(tokens: TokenCounts, price: TokenPrices): number {
  const { input, cacheRead, cacheWrite, output } = tokens;
  const fresh = Math.max(0, input - cacheRead - cacheWrite);
  const read = cacheRead * price.cacheRead + cacheWrite * price.cacheWrite;
  return (fresh * price.input + read + output * price.output) / 1e6;
}

/** US dollars for all tokens of these agents. Null if a price is not known. */
export function dollarsOf(agents: readonly AgentView[], priceOf: PriceOf): number | null {
  let sum = 0;
  for (const { id, tokens } of agents) {
    if (tokens.input + tokens.output === 0) continue;
    const dollars = priceOf(id, tokens);
    if (dollars === null) return null;
    sum += dollars;
  }
  return sum;
}

type AskedTask = TaskView & { kind: 'question' | 'approval' };

function isAsked(task: TaskView): task is AskedTask {
  return task.endedAt === null && task.kind !== 'delegation';
}

function stateOf(
  { archived }: Projection,
  agents: readonly AgentView[],
  asked: readonly AskedTask[],
): StandingState {
  const isAny = (condition: AgentCondition) => agents.some((agent) => agent.condition === condition);
  // An archived conversation needs nobody; it may still be at work.
  if (!archived && isAny('failed')) return 'failed';
  if (!archived && asked.length > 0) return 'asks';
  if (isAny('running')) return 'running';
  return !archived && agents.some(isWaiting) ? 'waiting' : 'quiet';
}

function isWaiting({ condition, pending }: AgentView): boolean {
  return condition === 'held' || ((condition === 'idle' || condition === 'paused') && pending.length > 0);
}

function sinceOf(
  state: StandingState,
  { at, turns, arrows }: Projection,
  agents: readonly AgentView[],
  asked: readonly AskedTask[],
): number {
  const earliest = (times: readonly number[]) => times.reduce((least, time) => Math.min(least, time), at);
  switch (state) {
    case 'failed':
      return earliest(agents.filter(({ condition }) => condition === 'failed').map(({ since }) => since.at));
    case 'asks':
      return earliest(asked.map((task) => task.at));
    case 'running':
      return earliest(turns.filter(({ status }) => status === 'running').map(({ startedAt }) => startedAt));
    case 'waiting': {
      const waits = agents.filter(isWaiting).map(({ condition, since, pending }) => {
        if (condition === 'held') return since.at;
        return arrows.find(({ seq }) => seq === pending[0])?.at ?? at;
      });
      return earliest(waits);
    }
    case 'quiet':
      return at;
  }
}

function failureOf(agents: readonly AgentView[]): Standing['failure'] {
  const failed = agents.find(({ condition }) => condition === 'failed');
  if (!failed) return null;
  const { code, message } = failed.problem ?? { code: 'failed', message: '' };
  return { agent: failed.id, turn: failed.lastTurn, code, message: oneLine(message) };
}

function asksOf(asked: readonly AskedTask[]): Standing['asks'] {
  const [first] = asked;
  if (!first) return null;
  const { id, at, owner, kind, text, argsHash } = first;
  const deadlines = asked.flatMap((task) => task.deadline ?? []);
  const deadline = deadlines.length > 0 ? Math.min(...deadlines) : null;
  const line = oneLine(text);
  const decide = argsHash !== null && line === text ? { request: id, argsHash } : null;
  return { count: asked.length, task: id, at, agent: owner, kind, text: line, deadline, decide };
}
