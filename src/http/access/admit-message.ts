import { isGranted } from '../../library/access/index.ts';
import type { NewMessage } from '../../library/troupe.ts';
import { checkWords } from '../read-json.ts';
import { rateLimited } from '../refusal.ts';
import { checkAuthor } from './author-rule.ts';
import type { Caller } from './caller.ts';
import { unknownConversation } from './limit-troupe.ts';

/**
 * Checks that a caller may send a message now: the conversation, the author, and the author's rate, in this order. A refused
 * message must not use up the rate of the author it names. Throws `conversation_unknown` and `Refusal`.
 */
export function admitMessage(
  { principal, traffic }: Pick<Caller, 'principal' | 'traffic'>,
  conversation: string,
  { author, content }: Pick<NewMessage, 'author' | 'content'>,
): void {
  if (!isGranted(principal, conversation)) throw unknownConversation(conversation);
  checkAuthor(principal, author);
  checkWords(content);
  const wait = traffic.message(principal, principal.tenant, author);
  const { messagesPerSecond: limit } = traffic.limits;
  if (wait > 0) throw rateLimited(`at most ${limit} messages a second of one author`, limit, wait);
}
