import { type AgentId, type Event, type EventOf, isAbout, isTaskEnd } from '../events/index.ts';

/** Who takes part in one conversation, and for which stretches of its log somebody did not: a fold. */
export interface Membership {
  /** Agents that have left, and whether they are blocked. */
  away: Map<AgentId, { blocked: boolean }>;
  /** The stretches of the log for which they were away, without the events at their ends. */
  absences: Map<AgentId, readonly Absence[]>;
  /** What agents that were let in see of what came before. */
  joined: Map<AgentId, EventOf<'joined'>['body']['policy']>;
}

interface Absence {
  from: number;
  to: number;
}

export function newMembership(): Membership {
  return { away: new Map(), absences: new Map(), joined: new Map() };
}

export function foldMembership(membership: Membership, event: Event): void {
  if (!isAbout(event, 'members')) return;
  switch (event.kind) {
    case 'left':
      return leave(membership, event);
    case 'joined':
      return join(membership, event);
    case 'message':
      if (event.author.kind === 'user') for (const agent of event.to) comeBack(membership, agent, event.seq);
      return;
  }
}

function leave({ away, absences }: Membership, { body, seq }: EventOf<'left'>): void {
  const { agent, blocked = false } = body;
  if (!away.has(agent))
    absences.set(agent, [...(absences.get(agent) ?? []), { from: seq, to: Number.MAX_SAFE_INTEGER }]);
  away.set(agent, { blocked });
}

/** That an agent takes its first turn, which the runtime notes, lifts no block that came meanwhile. */
function join(membership: Membership, { author, body, seq }: EventOf<'joined'>): void {
  const { joined } = membership;
  if (!joined.has(body.agent) || author.kind !== 'system') joined.set(body.agent, body.policy);
  if (author.kind !== 'system') comeBack(membership, body.agent, seq);
}

/** Let in again, or addressed by a person: a message that brings it back is heard itself. */
function comeBack({ away, absences }: Membership, agent: AgentId, seq: number): void {
  if (!away.delete(agent)) return;
  const before = absences.get(agent) ?? [];
  absences.set(
    agent,
    before.map((absence, index) => (index === before.length - 1 ? { ...absence, to: seq } : absence)),
  );
}

/** Whether an event that addresses the agent does not wake it, because it was away. The ends of tasks wait for it. */
export function isUnheard({ away, absences }: Membership, agent: AgentId, event: Event): boolean {
  if (isTaskEnd(event)) return away.has(agent);
  return absences.get(agent)?.some(({ from, to }) => event.seq > from && event.seq < to) ?? false;
}

/** A copy to look ahead with. */
export function forkMembership({ away, absences, joined }: Membership): Membership {
  return { away: new Map(away), absences: new Map(absences), joined: new Map(joined) };
}
