import { TroupeError } from '../errors.ts';
import type { Author } from '../events/index.ts';
import type { Asked, NewMessage } from '../troupe.ts';

/** The author of a question without one. */
const ASKING_AUTHOR: Author = { kind: 'user', id: 'user', name: 'User' };

/** A message of `author` if it names none. Default: the user `User`. Throws `event_invalid` for what is neither a text nor an object. */
export function messageFrom(asked: Asked, author: Author = ASKING_AUTHOR): NewMessage {
  if (typeof asked !== 'string' && (typeof asked !== 'object' || asked === null))
    throw new TroupeError('event_invalid', 'message: give a text, or an object such as { to, content }', {
      path: 'message',
    });
  const message = typeof asked === 'string' ? { content: asked } : asked;
  return { ...message, author: message.author ?? author };
}
