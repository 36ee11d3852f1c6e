import { isAbout, isTaskEnd } from '../events/aspects.ts';
import type { Event, EventOf, KindAbout } from '../events/index.ts';
import { type AgentCondition, type AgentView, MAX_PENDING, type TaskView } from './model.ts';
import { agentOf, changeAgent, type Draft, meetAgent } from './draft.ts';
import { messageText } from './words.ts';

/** Who takes part, what waits for whom, and who begins no turns. */
export function foldAgents(draft: Draft, event: Event): void {
  meetAll(draft, event);
  if (event.kind === 'command') return foldCommand(draft, event);
  if (event.kind === 'error') return foldError(draft, event);
  if (isAbout(event, 'members') && event.kind !== 'message') return foldMember(draft, event);
  deliver(draft, event);
}

function foldMember(draft: Draft, event: EventOf<Exclude<KindAbout<'members'>, 'message'>>): void {
  switch (event.kind) {
    case 'left':
      return changeAgent(draft, event.body.agent, { away: event.body.blocked ? 'blocked' : 'left' });
    case 'joined':
      // That an agent takes its first turn, which the runtime notes, lifts no block that came meanwhile.
      if (event.author.kind !== 'system') changeAgent(draft, event.body.agent, { away: null });
  }
}

function meetAll(draft: Draft, event: Event): void {
  const { author, to, kind } = event;
  if (author.kind === 'agent') {
    const agent = meetAgent(draft, author.id, event);
    if (agent && typeof author.name === 'string') changeAgent(draft, agent.id, { name: author.name });
  }
  for (const id of to) meetAgent(draft, id, event);
  if (kind === 'joined' || kind === 'left') meetAgent(draft, event.body.agent, event);
}

/** What is addressed to an agent waits for its next turn, unless it is away. */
function deliver(draft: Draft, event: Event): void {
  const { author, to, seq } = event;
  if (to.length === 0 || !wakes(event)) return;
  for (const id of to) {
    const agent = agentOf(draft, id);
    if (!agent || (author.kind === 'agent' && author.id === id)) continue;
    const comesBack = agent.away !== null && event.kind === 'message' && author.kind === 'user';
    if (agent.away !== null && !comesBack && !isTaskEnd(event)) continue;
    const pending = [...agent.pending, seq].slice(-MAX_PENDING);
    changeAgent(draft, id, { pending, ...(comesBack && { away: null }) });
  }
}

/** Whether an event has words for whom it addresses. */
function wakes(event: Event): boolean {
  if (event.kind === 'message') return messageText(event.body).trim() !== '';
  if (event.kind === 'injection') return !event.body.oneStep && event.body.content.trim() !== '';
  return event.kind === 'handoff' || event.kind === 'delegation.opened' || isTaskEnd(event);
}

function foldCommand(draft: Draft, event: EventOf<'command'>): void {
  const { command, agent: id } = event.body;
  if (command === 'retry') {
    for (const to of event.to) {
      const pending = [...(agentOf(draft, to)?.pending ?? []), event.seq].slice(-MAX_PENDING);
      changeAgent(draft, to, { pending });
    }
  }
  if (id === undefined) return;
  const agent = meetAgent(draft, id, event);
  if (!agent) return;
  if (command === 'pause' && agent.parked === null) changeAgent(draft, id, { parked: 'paused' });
  if (command === 'retire') changeAgent(draft, id, { parked: 'retired' });
  if (command === 'resume' || command === 'recall') {
    changeAgent(draft, id, { parked: null, ...(agent.parked === 'failed' && { problem: null }) });
  }
}

/** The runtime's notice that an actor is set aside: nobody else can take such an id. */
const SET_ASIDE = /^failed:([^:]+):/;

function foldError(draft: Draft, event: EventOf<'error'>): void {
  const { id: eventId, author, seq, body } = event;
  const [, id] = (author.kind === 'system' && SET_ASIDE.exec(eventId)) || [];
  const agent = id === undefined ? null : meetAgent(draft, id, event);
  if (!agent) return;
  const { code, message } = body;
  changeAgent(draft, agent.id, { parked: 'failed', problem: { code, message, seq } });
}

/** Gives every agent that the event may concern its condition anew, and notes since when it has it. */
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

interface Participants {
  condition: AgentCondition;
  state: string;
}

function conditionOf(agent: AgentView, open: readonly TaskView[], event: Event): Participants {
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

/** As far as the log tells: what a turn does between two events, it does not. */
function stateAtWork({ turn, state }: AgentView, event: Event): string {
  const isAtWork = state.startsWith('working') || state === 'backoff';
  if (event.turn !== turn && isAtWork) return state;
  if (event.kind === 'error') return 'backoff';
  if (!isAbout(event, 'compaction')) return 'working';
  switch (event.kind) {
    case 'compaction.started':
    case 'compaction.summarising':
    case 'compaction':
      return 'working.compacting';
    case 'compaction.failed':
      // With a strategy it was one of several that are tried.
      return event.body.strategy === undefined ? 'working' : 'working.compacting';
    case 'compaction.pruned':
    case 'compaction.done':
    case 'baseline':
      return 'working';
  }
}

/** People before agents, who come by themselves. */
function stateAtRest({ id }: AgentView, open: readonly TaskView[]): string {
  const kinds = new Set<string>();
  for (const { owner, kind } of open) if (owner === id) kinds.add(kind);
  if (kinds.has('approval')) return 'waiting.approval';
  if (kinds.has('question')) return 'waiting.answer';
  return kinds.has('delegation') ? 'waiting.delegation' : 'idle';
}
