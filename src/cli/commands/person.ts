import type { PersonProfile } from '../../events/index.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { print, printable, printJson } from '../render/output.ts';

interface PersonOptions extends ClientOptions, PersonProfile {
  forget?: boolean;
}

/** Shows what agents are told of a person, changes the named fields, or removes all of it. An empty value removes a field. */
export async function person(id: string, options: PersonOptions): Promise<void> {
  const { name, timeZone, preferences, forget } = options;
  const client = await connect(options, { needs: 'data', mayCreate: true });
  try {
    if (forget) {
      const removed = await client.people.remove(id);
      return options.json
        ? printJson({ removed })
        : print(removed ? `${id} is forgotten` : `nothing is known of ${id}`);
    }
    const given = Object.entries({ name, timeZone, preferences }).filter(([, value]) => value !== undefined);
    const before = await client.people.get(id);
    const merged = Object.entries({ ...before, ...Object.fromEntries(given) }).filter(
      ([, value]) => value !== '',
    );
    const profile = given.length === 0 ? before : await client.people.set(id, Object.fromEntries(merged));
    if (options.json) return printJson({ profile });
    const lines = Object.entries(profile ?? {}).map(
      ([field, value]) => `${field}: ${printable(String(value))}`,
    );
    print(lines.length > 0 ? lines.join('\n') : `nothing is known of ${id}`);
  } finally {
    await client.close();
  }
}
