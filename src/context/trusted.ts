import type { Event } from '../events/index.ts';

/** Ids of the people whose word counts (`trust.people`); null: everybody's. */
export type Trusted = readonly string[] | null;

/** Whether an event is a person's whose word counts. What agents say is never a person's word, whoever they quote. */
export function isTrustedPerson(
  trusted: Trusted,
  { author, context }: Pick<Event, 'author' | 'context'>,
): boolean {
  return author.kind === 'user' && !isStranger(trusted, { author, context });
}

/** A person who may be heard and may not command: as the settings say now, or as a gateway said then. */
export function isStranger(
  trusted: Trusted,
  { author, context }: Pick<Event, 'author' | 'context'>,
): boolean {
  if (author.kind !== 'user') return false;
  if (context?.untrusted === true || context?.held !== undefined) return true;
  return trusted !== null && !trusted.includes(author.id);
}
