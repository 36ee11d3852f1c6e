import type { Event, EventDraft } from '../../events/index.ts';
import { escapeFences } from '../fence.ts';
import { agentLabel, createPeople, addPerson, type People, personLabel } from '../people.ts';
import { RENDERING } from '../rendering.ts';

/** A text for every reader names its people as they are known at its end. */
export const AT_THE_END = Number.MAX_SAFE_INTEGER;

export function peopleOf(events: readonly (Event | EventDraft)[]): People {
  const people = createPeople();
  for (const event of events) {
    if (event.author.kind === 'user') addPerson(people, event.author, 'seq' in event ? event.seq : 0);
  }
  return people;
}

/** Who speaks, and to whom where it was not to all: `Ana`, `@planner`, `Ana -> @coder`. */
export function speakerOf(
  { author, to }: Event | EventDraft,
  people: People,
  rendering: number = RENDERING,
): string {
  const target = to.length === 0 ? '' : ` -> ${to.map((agent) => `@${agentLabel(agent)}`).join(', ')}`;
  if (author.kind === 'agent') return `@${agentLabel(author.id)}${target}`;
  if (author.kind === 'system') return `system${target}`;
  return `${personLabel(people, author, AT_THE_END, rendering)}${target}`;
}

/** Names of people never begin with '@', and nobody is called `system`: see `personLabel`. */
export function isPersonSpeaker(speaker: string): boolean {
  return !/^(?:@|system(?: ->|$))/.test(speaker);
}

/** Behind the header of somebody whose word is no instruction to anybody. */
export const NOT_TRUSTED = '(not trusted)';

/** A header on one line, whatever the record holds. */
export function header(speaker: string): string {
  return `[${escapeFences(speaker.replace(/[\p{C}\p{Zl}\p{Zp}[\]]/gu, ''))}]`;
}
