import { TroupeError } from '../../base/errors.ts';
import type { Author } from '../../events/index.ts';

/** Ids of the people who may address agents and give commands; null: everybody. */
export type Trust = readonly string[] | null;

/** Only people are checked; agents and the system are always trusted. */
export function isTrusted(trust: Trust, { kind, id }: Author): boolean {
  return kind !== 'user' || trust === null || trust.includes(id);
}

export function requireTrusted(trust: Trust, by: Author, what: string): void {
  if (isTrusted(trust, by)) return;
  throw new TroupeError('command_refused', `"${by.id}" may not ${what}: it is not one of trust.people`, {
    author: by.id,
  });
}

/** Throws `command_refused` unless a trusted person asks. */
export function requirePerson(trust: Trust, by: Author, what: string): void {
  requireTrusted(trust, by, what);
  if (by.kind === 'user') return;
  throw new TroupeError('command_refused', `only a person may ${what}, not the ${by.kind} "${by.id}"`, {
    author: by.id,
  });
}
