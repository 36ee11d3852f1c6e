import { createHash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import { type Author, PersonId, PersonProfile, parseGiven, type TenantId } from '../../events/index.ts';
import { type KeyValue, updateEntry } from '../../base/key-value.ts';
import type { ProfileRepository } from '../troupe.ts';

interface ProfileRepositories {
  of: (tenant: TenantId) => ProfileRepository;
  /** For turns: at most `keepMs` old, and as recent as this process's last change. Throws what `get` of a repository throws. */
  known: (tenant: TenantId, person: string) => Promise<PersonProfile | null>;
}

interface ProfileRepositoriesOptions {
  entriesOf: (tenant: TenantId) => KeyValue;
  /** Changes texts before they are stored. */
  redact?: ((text: string, author: Author) => string) | undefined;
  clock: Pick<Clock, 'monotonic'>;
  /** How long a read profile stays valid, ms. Infinity: no other process changes profiles. */
  keepMs: number;
}

/** Bounds the profiles that this process knows. */
const MOST_KNOWN = 10_000;

export function createProfileRepositories({
  entriesOf,
  redact,
  clock,
  keepMs,
}: ProfileRepositoriesOptions): ProfileRepositories {
  const known = new Map<string, { profile: PersonProfile | null; until: number }>();
  /** Number of writes. A profile read during a write may be outdated. */
  let changes = 0;

  return {
    async known(tenant, person) {
      const name = `${tenant} ${person}`;
      const found = known.get(name);
      const now = clock.monotonic();
      if (found && now < found.until) return found.profile;
      const before = changes;
      const profile = await createProfileRepository(entriesOf(tenant)).get(person);
      if (known.size >= MOST_KNOWN) known.clear();
      if (before === changes) known.set(name, { profile, until: now + keepMs });
      return profile;
    },
    of(tenant) {
      const repository = createProfileRepository(entriesOf(tenant), redact);
      async function changing<T>(person: string, change: Promise<T>): Promise<T> {
        try {
          return await change;
        } finally {
          changes += 1;
          known.delete(`${tenant} ${person}`);
        }
      }
      return {
        get: (person) => repository.get(person),
        set: (person, profile) => changing(person, repository.set(person, profile)),
        remove: (person) => changing(person, repository.remove(person)),
      };
    },
  };
}

export function createProfileRepository(
  entries: KeyValue,
  redact: (text: string, author: Author) => string = (text) => text,
): ProfileRepository {
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

/** Ids of people come from any client, but keys of entries must be slugs. */
function keyOf(person: string): string {
  const id = parseGiven(PersonId, person, 'person', 'event_invalid');
  return `person/${createHash('sha256').update(id).digest('hex')}`;
}

function parse(input: unknown): PersonProfile {
  return parseGiven(PersonProfile, input, 'profile', 'event_invalid');
}

/** A damaged entry counts as missing: a profile must not fail a turn. */
function parseEntry(text: string | null): PersonProfile | null {
  try {
    const parsed = PersonProfile.safeParse(JSON.parse(text ?? '{}'));
    return parsed.success && Object.keys(parsed.data).length > 0 ? parsed.data : null;
  } catch {
    // Not JSON.
    return null;
  }
}
