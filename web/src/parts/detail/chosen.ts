import { computed } from '@preact/signals';
import type { AgentId, TurnId } from '../../../../src/events/index.ts';
import type { AgentView, TurnView } from '../../../../src/library/projection/model.ts';
import type { ActorStatus } from '../../../../src/library/troupe.ts';
import { originalOf } from '../../state/copied.ts';
import { actors, shown } from '../../state/live.ts';
import { route } from '../../state/route.ts';
import { selectedAgent, turnOf, turns } from '../../state/selection.ts';

/** Stands in the address in place of a turn: the prompt that the agent would be sent now. */
export const NEXT = 'next';

/** The agent and turn that the right column shows. */
export interface Chosen {
  agent: AgentView | null;
  agentId: AgentId | null;
  /** Null until the turn is read; the id already leads to its trace. */
  turn: TurnView | null;
  turnId: TurnId | null;
  number: number | null;
  isNext: boolean;
  /** Current status from the server; null in the past and for agents that never ran. */
  actor: ActorStatus | null;
}

export const chosen = computed<Chosen>(() => {
  const { turn: asked } = route.value;
  const projection = shown.value;
  const isNext = asked === NEXT;
  const named = asked === null || isNext ? null : partsOf(asked);
  const agent = named ? (projection?.agents[named.agent] ?? null) : agentWithoutTurn();
  const agentId = named?.agent ?? agent?.id ?? null;
  const turnId = isNext ? null : named ? (asked as TurnId) : lastTurnOf(agent);
  return {
    agent,
    agentId,
    turn: turnOf(turnId),
    turnId,
    number: numberOf(turnId),
    isNext,
    actor: actors.value.find(({ agent }) => agent === agentId) ?? null,
  };
});

/** Whether the agent has begun other turns after the one in the address: what the agent does now is then not about that turn. */
export const isTurnOver = computed(() => {
  const { agent, turn, turnId } = chosen.value;
  if (turn === null || turn.to === null || agent === null) return false;
  return (agent.turn ?? agent.lastTurn) !== turnId;
});

/** The selected agent. Null if the address names only an event, which belongs to no agent. */
function agentWithoutTurn(): AgentView | null {
  const { turn, event, agent, tab } = route.value;
  const isEvent = event !== null && turn === null && (agent === null || tab === 'events' || tab === 'raw');
  return isEvent ? null : selectedAgent.value;
}

function lastTurnOf(agent: AgentView | null): TurnId | null {
  return (agent?.turn ?? agent?.lastTurn ?? null) as TurnId | null;
}

function numberOf(turn: TurnId | null): number | null {
  return turn === null ? null : (partsOf(turn)?.number ?? null);
}

/** Turns of the selected agent, newest first. */
export const ownTurns = computed(() => {
  const { agentId } = chosen.value;
  return turns.value.filter(({ agent }) => agent === agentId).toReversed();
});

/** The number of the agent's newest turn, which is how many it has had; 0 before its first. */
export const newestNumber = computed(() => numberOf(lastTurnOf(chosen.value.agent)) ?? 0);

/** The previous turn of the same agent that sent a prompt, if known. */
export const turnBefore = computed<TurnId | null>(() => {
  const { turnId, number, isNext, agent } = chosen.value;
  if (isNext) return originalOf(agent?.lastTurn ?? null) ? null : (agent?.lastTurn ?? null);
  const before = ownTurns.value.find((turn) => number !== null && turn.number < number);
  if (before) return originalOf(before.id) ? null : before.id;
  // The one before is not read; turns are numbered from 1.
  return turnId !== null && number !== null && number > 1 && ownTurns.value.length > 0
    ? (turnId.replace(/\d+$/, String(number - 1)) as TurnId)
    : null;
});

/** Parses `<conversation>:<agent>:<number>` from the right, because a conversation's name may contain a colon. */
export function partsOf(turn: string): { conversation: string; agent: AgentId; number: number } | null {
  const match = /:([^:]+):(\d+)$/.exec(turn);
  if (match?.[1] === undefined) return null;
  return { conversation: turn.slice(0, match.index), agent: match[1] as AgentId, number: Number(match[2]) };
}

/** The runs of a turn that the address compares. */
export function runsOf(turn: string): string[] {
  const [original, ...runs] = route.value.runs.split(',');
  return original === turn ? runs : [];
}

/** `turn 6`, for places where the agent is clear. */
export function turnLabel(turn: string): string {
  return turn === NEXT ? 'the next prompt' : `turn ${partsOf(turn)?.number ?? turn}`;
}
