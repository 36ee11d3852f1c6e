import type { Author } from '../events/index.ts';
import type { Asked, NewMessage } from '../troupe.ts';

/** The author of a question without one. */
const ASKING_AUTHOR: Author = { kind: 'user', id: 'user', name: 'User' };

/** A message of `author` if it names none. Default: the user `User`. */
export function messageFrom(asked: Asked, author: Author = ASKING_AUTHOR): NewMessage {
  const message = typeof asked === 'string' ? { content: asked } : asked;
  return { ...message, author: message.author ?? author };
}
