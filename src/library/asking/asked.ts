import { TroupeError } from '../../base/errors.ts';
import type { Author } from '../../events/index.ts';
import type { AgentInfo, Asked, NewMessage } from '../troupe.ts';

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

/** A question without an addressee is for the only agent, if there is only one. */
export function addressed(message: NewMessage, agents: readonly Pick<AgentInfo, 'id'>[]): NewMessage {
  const [only, ...others] = agents;
  const isClear = message.to === undefined && message.replyTo === undefined && only && others.length === 0;
  return isClear ? { ...message, to: [only.id] } : message;
}

export function nobodyAnswers(): TroupeError {
  return new TroupeError(
    'agent_unknown',
    'the message is stored, but no agent is to answer it: name one in "to" (APIs of OpenAI: as the model; MCP: as the agent), or set routing or defaults.respondWhenUnaddressed',
  );
}
