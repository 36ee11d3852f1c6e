import { createHash } from 'node:crypto';
import { type Author, PersonId, PersonProfile, parseGiven } from '../events/index.ts';
import { type KeyValue, updateEntry } from '../key-value.ts';

/** The profiles of the people of one tenant, by the id of the author. They hold in all its conversations. */
export interface ProfileBook {
  /** Null: the person has none. Throws `event_invalid`, `store_unavailable`. */
  get(person: string): Promise<PersonProfile | null>;
  /** Replaces the profile. Agents are told at their next turn for this person. Throws `event_invalid`, `store_unavailable`. */
  set(person: string, profile: PersonProfile): Promise<PersonProfile>;
  /** False: there was none. What agents were told before stays in the log. */
  remove(person: string): Promise<boolean>;
}

/** `redact` changes texts before they are stored. */
export function createProfileBook(
  entries: KeyValue,
  redact: (text: string, author: Author) => string = (text) => text,
): ProfileBook {
  const write = (key: string, profile: PersonProfile) =>
    updateEntry<PersonProfile | null>(entries, key, parseEntry, () => profile);
  return {
    get: async (person) => parseEntry(await entries.get(keyOf(person))),
    async set(person, given) {
      const { name, timeZone, preferences } = parse(given);
      const author: Author = { kind: 'user', id: person, name: person };
      const profile = parse({
        ...(name !== undefined && { name: redact(name, author) }),
        ...(timeZone !== undefined && { timeZone }),
        ...(preferences !== undefined && { preferences: redact(preferences, author) }),
      });
      await write(keyOf(person), profile);
      return profile;
    },
    async remove(person) {
      const key = keyOf(person);
      const before = parseEntry(await entries.get(key));
      // Entries cannot be removed; an empty one holds nothing of the person.
      if (before) await write(key, {});
      return before !== null;
    },
  };
}

/** Ids come from any client; keys of entries are slugs. */
function keyOf(person: string): string {
  const id = parseGiven(PersonId, person, 'person', 'event_invalid');
  return `person/${createHash('sha256').update(id).digest('hex')}`;
}

function parse(input: unknown): PersonProfile {
  return parseGiven(PersonProfile, input, 'profile', 'event_invalid');
}

/** A damaged entry counts as none: a profile is no reason to fail a turn. */
function parseEntry(text: string | null): PersonProfile | null {
  try {
    const parsed = PersonProfile.safeParse(JSON.parse(text ?? '{}'));
    return parsed.success && Object.keys(parsed.data).length > 0 ? parsed.data : null;
  } catch {
    // Not JSON.
    return null;
  }
}
