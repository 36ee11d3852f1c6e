import { isAbout, isTaskEnd } from '../../events/aspects.ts';
import { messageText } from '../../events/message-text.ts';
import { hasEnded } from '../../machines/compaction-fold.ts';
import { awayChanges } from '../../machines/membership.ts';
import {
  availabilityNoteOf,
  availabilityOf,
  foldAvailability,
  unavailabilityIn,
} from '../../machines/availability-fold.ts';
import type { Event, EventOf } from '../../events/index.ts';
import { type AgentView, MAX_PENDING, type TaskView } from './model.ts';
import { agentOf, changeAgent, type Draft, meetAgent } from './draft.ts';

/** Folds the agents: their membership, their pending events and their availability. */
export function foldAgents(draft: Draft, event: Event): void {
  meetAll(draft, event);
  foldAvailabilityOf(draft, event);
  if (event.kind === 'command') return foldRetry(draft, event);
  if (event.kind === 'error') return;
  for (const { agent, away } of awayChanges(event))
    changeAgent(draft, agent, { away: away && (away.blocked ? 'blocked' : 'left') });
  deliver(draft, event);
}

function meetAll(draft: Draft, event: Event): void {
  const { author, to, kind } = event;
  if (author.kind === 'agent') {
    const agent = meetAgent(draft, author.id, event);
    if (agent && typeof author.name === 'string') changeAgent(draft, agent.id, { name: author.name });
  }
  for (const id of to) meetAgent(draft, id, event);
  if (kind === 'membership.changed') meetAgent(draft, event.body.agent, event);
}

/** An addressed event waits for the agent's next turn, unless the agent is away. */
function deliver(draft: Draft, event: Event): void {
  const { author, to, seq } = event;
  if (to.length === 0 || !wakes(event)) return;
  for (const id of to) {
    const agent = agentOf(draft, id);
    if (!agent || (author.kind === 'agent' && author.id === id)) continue;
    if (agent.away !== null && !isTaskEnd(event)) continue;
    changeAgent(draft, id, { pending: [...agent.pending, seq].slice(-MAX_PENDING) });
  }
}

/** Whether an event has words for the agents it addresses. */
function wakes(event: Event): boolean {
  if (event.kind === 'message') return messageText(event.body).trim() !== '';
  if (event.kind === 'injection') return !event.body.oneStep && event.body.content.trim() !== '';
  return event.kind === 'handoff' || event.kind === 'delegation.opened' || isTaskEnd(event);
}

function foldRetry(draft: Draft, { body, to, seq }: EventOf<'command'>): void {
  if (body.command !== 'retry') return;
  for (const id of to) {
    const pending = [...(agentOf(draft, id)?.pending ?? []), seq].slice(-MAX_PENDING);
    changeAgent(draft, id, { pending });
  }
}

/** Advances the availability of the agent that a command or a failure notice names. */
function foldAvailabilityOf(draft: Draft, event: Event): void {
  const note = availabilityNoteOf(event);
  const agent = note && meetAgent(draft, note.agent, event);
  if (!agent) return;
  const from = availabilityOf(agent.parked);
  const state = foldAvailability(from, note);
  const isRepaired = from !== 'available' && state === 'available';
  changeAgent(draft, agent.id, { parked: unavailabilityIn(state), ...(isRepaired && { problem: null }) });
  if (event.kind !== 'error' || state !== 'failed') return;
  const { code, message } = event.body;
  changeAgent(draft, agent.id, { problem: { code, message, seq: event.seq } });
}

/** Recomputes the condition of every agent that the event may have changed. */
export function settleConditions(draft: Draft, event: Event): void {
  if (draft.touched.size === 0) return;
  const { seq, at } = event;
  const open = draft.next.tasks.filter(({ endedAt }) => endedAt === null);
  for (const id of draft.touched) {
    const agent = agentOf(draft, id);
    if (!agent) continue;
    const { condition, state } = conditionOf(agent, open, event);
    const changed = condition !== agent.condition || state !== agent.state;
    if (changed) changeAgent(draft, id, { condition, state, since: { seq, at } });
  }
}

function conditionOf(
  agent: AgentView,
  open: readonly TaskView[],
  event: Event,
): Pick<AgentView, 'condition' | 'state'> {
  const { parked, away, turn, problem } = agent;
  if (parked === 'failed') return { condition: 'failed', state: 'failed' };
  if (turn !== null) return { condition: 'running', state: stateAtWork(agent, event) };
  if (parked === 'retired') return { condition: 'retired', state: 'retired' };
  if (away !== null) return { condition: 'left', state: away };
  if (parked === 'paused') return { condition: 'paused', state: 'paused' };
  const state = stateAtRest(agent, open);
  if (problem) return { condition: 'failed', state };
  if (state === 'idle') return { condition: 'idle', state };
  return { condition: state === 'waiting.delegation' ? 'held' : 'waiting', state };
}

/** The state as far as the log shows it: activity between two events of a turn is not logged. */
function stateAtWork({ turn, state }: AgentView, event: Event): string {
  const isAtWork = state.startsWith('working') || state === 'backoff';
  if (event.turn !== turn && isAtWork) return state;
  if (event.kind === 'error') return 'backoff';
  if (!isAbout(event, 'compaction')) return 'working';
  switch (event.kind) {
    case 'compaction':
      return 'working.compacting';
    case 'compaction.progress':
      return hasEnded(event.body) ? 'working' : 'working.compacting';
    case 'baseline':
      return 'working';
  }
}

/** Waiting for people comes first, since agents answer without help. */
function stateAtRest({ id }: AgentView, open: readonly TaskView[]): string {
  const kinds = new Set<string>();
  for (const { owner, kind } of open) if (owner === id) kinds.add(kind);
  if (kinds.has('approval')) return 'waiting.approval';
  if (kinds.has('question')) return 'waiting.answer';
  return kinds.has('delegation') ? 'waiting.delegation' : 'idle';
}
