import { isAbout, isImported, isTaskEnd } from '../events/aspects.ts';
import type { AgentId, Event, EventOf, JoinPolicy, Unavailability } from '../events/index.ts';
import {
  type AvailabilityNote,
  availabilityNoteOf,
  availabilityOf,
  foldAvailability,
  unavailabilityIn,
} from './availability-fold.ts';

/** The agents that take part in one conversation, and their absences. A fold of its log. */
export interface Membership {
  /** Agents that have left or are blocked. */
  away: Map<AgentId, { blocked: boolean }>;
  /** Agents that are paused, failed or retired here. */
  unavailable: Map<AgentId, Unavailability>;
  /** Stretches of the log for which they were away, without the events at both ends. */
  absences: Map<AgentId, readonly Absence[]>;
  /** How much of the earlier log each agent that joined sees. */
  joined: Map<AgentId, JoinPolicy>;
}

interface Absence {
  from: number;
  to: number;
}

export function newMembership(): Membership {
  return { away: new Map(), unavailable: new Map(), absences: new Map(), joined: new Map() };
}

export function foldMembership(membership: Membership, event: Event): void {
  if (event.kind === 'membership.changed') noteJoined(membership, event);
  for (const { agent, away } of awayChanges(event)) {
    if (away) leave(membership, agent, away.blocked, event.seq);
    else comeBack(membership, agent, event.seq);
  }
  const note = availabilityNoteOf(event);
  if (note) noteAvailability(membership, note, isImported(event));
}

function noteAvailability({ unavailable }: Membership, note: AvailabilityNote, imported: boolean): void {
  const { agent } = note;
  const before = unavailable.get(agent) ?? null;
  const after = unavailabilityIn(foldAvailability(availabilityOf(before), note));
  // An imported event counts only if an agent retires or returns: its pauses and failures were those of agents
  // elsewhere.
  if (imported && before !== 'retired' && after !== 'retired') return;
  if (after) unavailable.set(agent, after);
  else unavailable.delete(agent);
}

/** The agents that an event sends away or brings back. A person's message brings back the agents it addresses. */
export function awayChanges(event: Event): { agent: AgentId; away: { blocked: boolean } | null }[] {
  if (!isAbout(event, 'members')) return [];
  switch (event.kind) {
    case 'membership.changed': {
      const { body } = event;
      if (body.change === 'left') return [{ agent: body.agent, away: { blocked: body.blocked ?? false } }];
      // The runtime's own record of a first turn ends no absence and lifts no block.
      return event.author.kind === 'system' ? [] : [{ agent: body.agent, away: null }];
    }
    case 'message':
      return event.author.kind === 'user' ? event.to.map((agent) => ({ agent, away: null })) : [];
  }
}

function leave({ away, absences }: Membership, agent: AgentId, blocked: boolean, seq: number): void {
  if (!away.has(agent))
    absences.set(agent, [...(absences.get(agent) ?? []), { from: seq, to: Number.MAX_SAFE_INTEGER }]);
  away.set(agent, { blocked });
}

function noteJoined({ joined }: Membership, { author, body }: EventOf<'membership.changed'>): void {
  if (body.change !== 'joined') return;
  if (!joined.has(body.agent) || author.kind !== 'system') joined.set(body.agent, body.policy);
}

/** The absence ends before the event: the message that brings an agent back wakes it. */
function comeBack({ away, absences }: Membership, agent: AgentId, seq: number): void {
  if (!away.delete(agent)) return;
  const before = absences.get(agent) ?? [];
  absences.set(
    agent,
    before.map((absence, index) => (index === before.length - 1 ? { ...absence, to: seq } : absence)),
  );
}

/** Whether an event does not wake the addressed agent, because it was away. The end of a task waits for its return. */
export function isUnheard({ away, absences }: Membership, agent: AgentId, event: Event): boolean {
  if (away.size === 0 && absences.size === 0) return false;
  if (isTaskEnd(event)) return away.has(agent);
  return absences.get(agent)?.some(({ from, to }) => event.seq > from && event.seq < to) ?? false;
}

/** In a fork agents begin anew, except those that have retired. */
export function keepRetired({ unavailable }: Membership): void {
  for (const [agent, state] of unavailable) if (state !== 'retired') unavailable.delete(agent);
}

export function isRetired({ unavailable }: Pick<Membership, 'unavailable'>, agent: AgentId): boolean {
  return unavailable.get(agent) === 'retired';
}

/** A copy for looking ahead; the original does not change. */
export function forkMembership({ away, unavailable, absences, joined }: Membership): Membership {
  return {
    away: new Map(away),
    unavailable: new Map(unavailable),
    absences: new Map(absences),
    joined: new Map(joined),
  };
}
