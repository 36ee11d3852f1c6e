import { userInfo } from 'node:os';
import { TroupeError } from '../../base/errors.ts';
import type { Author } from '../../events/index.ts';

/** The author of a message: the name from `--as`, else the user of this machine. */
export function authorNamed(name: string = userName()): Author {
  const id = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|(?<!-)-+$/g, '');
  if (name.trim() === '')
    throw new TroupeError('event_invalid', '--as needs a name', { path: 'author.name' });
  return { kind: 'user', id: id || 'user', name };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A process may run as a user that the system has no entry for.
    return 'user';
  }
}
