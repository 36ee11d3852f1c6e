import type { Event, EventDraft } from '../../events/index.ts';
import { escapeFences } from '../fence.ts';
import { agentLabel, createPeople, addPerson, type People, personLabel, systemLabel } from '../people.ts';

/** Texts for every reader use the names known at the end of the log. */
export const AT_THE_END = Number.MAX_SAFE_INTEGER;

export function peopleOf(events: readonly (Event | EventDraft)[]): People {
  const people = createPeople();
  for (const event of events) {
    if (event.kind === 'notice') continue;
    if (event.author.kind === 'user') addPerson(people, event.author, 'seq' in event ? event.seq : 0);
  }
  return people;
}

/** The speaker, and the recipients unless it was for all: `Ana`, `@planner`, `Ana -> @coder`. */
export function speakerOf(event: Event | EventDraft, people: People): string {
  const { author, to } = event;
  const target = to.length === 0 ? '' : ` -> ${to.map((agent) => `@${agentLabel(agent)}`).join(', ')}`;
  if (author.kind === 'agent') return `@${agentLabel(author.id)}${target}`;
  if (author.kind === 'system') return `${systemLabel(event)}${target}`;
  return `${personLabel(people, author, AT_THE_END)}${target}`;
}

/** Names of people never begin with '@' and are never those of the runtime: see `personLabel`. */
export function isPersonSpeaker(speaker: string): boolean {
  return !/^(?:@|(?:system|imported note)(?: ->|$))/.test(speaker);
}

/** Marks words of an untrusted person, behind the header. */
export const NOT_TRUSTED = '(not trusted)';

/** A header on one line, whatever the name contains: of brackets also those that are the same in another form. */
export function header(speaker: string): string {
  return `[${escapeFences(speaker.replace(/[\p{C}\p{Zl}\p{Zp}[\]\uFE47\uFE48\uFF3B\uFF3D]/gu, ''))}]`;
}
