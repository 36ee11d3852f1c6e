import { covers, type Principal, type Scope } from '../../library/access/index.ts';
import type { Author } from '../../events/index.ts';
import { Refusal } from '../refusal.ts';
import { isSameAuthor } from './author-rule.ts';
import { unknownConversation } from './limit-troupe.ts';
import { isServerAdmin } from './check-scope.ts';

/** The rights of a new key. */
interface Reach {
  scopes: readonly Scope[];
  author?: Author | null | undefined;
  /** Absent or null: all. */
  conversations?: readonly string[] | null | undefined;
}

/** The tenant that a caller may administer: its own, or any for server administrators. Throws `Refusal`. */
export function tenantFor(principal: Principal, asked: string | undefined): string {
  const { tenant } = principal;
  if (asked === undefined || asked === tenant || isServerAdmin(principal)) return asked ?? tenant;
  throw new Refusal(403, 'scope_missing', 'this caller administers only its own tenant', { scope: 'admin' });
}

/** Checks that a caller grants no more than it has. Throws `Refusal`, `conversation_unknown`. */
export function checkReach(principal: Principal, { scopes, author, conversations }: Reach): void {
  const missing = scopes.find((scope) => !principal.scopes.includes(scope));
  if (missing !== undefined) {
    const message = `this caller has no scope "${missing}" and cannot grant it`;
    throw new Refusal(403, 'scope_missing', message, { scope: missing });
  }
  const own = principal.author;
  if (own && !(author && isSameAuthor(own, author))) {
    const message = `this caller writes as ${own.kind} "${own.id}", and so must its keys`;
    throw new Refusal(403, 'author_refused', message);
  }
  // The same rule as for messages: see `checkAuthor`.
  if (!own && author && author.kind !== 'user' && !principal.scopes.includes('operate')) {
    const message = `creating a key that writes as the ${author.kind} "${author.id}" needs the scope "operate"`;
    throw new Refusal(403, 'author_refused', message);
  }
  checkConversations(principal, conversations);
}

/** True if the caller may see a key or webhook. One that reaches beyond the caller's grant is hidden. */
export function sees(principal: Principal, { conversations }: Pick<Reach, 'conversations'>): boolean {
  return beyondGrant(principal, conversations) === null;
}

/** Checks that a caller was granted these conversations. Throws `conversation_unknown`. */
export function checkConversations(principal: Principal, conversations: Reach['conversations']): void {
  const beyond = beyondGrant(principal, conversations);
  if (beyond !== null) throw unknownConversation(beyond);
}

/** The first pattern that the caller was not granted; null if there is none. */
function beyondGrant(principal: Principal, conversations: Reach['conversations']): string | null {
  return (conversations ?? ['*']).find((pattern) => !covers(principal, pattern)) ?? null;
}
