import type { Context } from 'hono';
import { baseRoutePath, matchedRoutes } from 'hono/route';
import { type Principal, type Scope, isGranted, covers } from '../library/access/index.ts';
import { DEFAULT_TENANT, SYSTEM_AUTHOR, type Author } from '../events/index.ts';
import { Refusal, rateLimited } from './refusal.ts';
import { describedPath } from './route.ts';
import { TroupeError } from '../base/errors.ts';
import type { NewMessage } from '../library/troupe.ts';
import { checkWords } from './read-json.ts';
import { OPERATOR } from './schemas.ts';
import type { Caller } from './caller.ts';

/** What the guard requires of the callers of a route. */
export interface Rule {
  scopes: readonly Scope[];
  needsNoToken?: true | undefined;
}

/** Rules by the name of the route. */
export type RouteRules = Readonly<Record<string, Rule>>;

/** The rule of the matched route. Null if no route of this app was matched. Throws `Error` for an undeclared route. */
export function routeOf(context: Context, rules: RouteRules): Rule | null {
  // The declared mount path, which may have parameters, like the paths below.
  const mount = baseRoutePath(context).replace(/(?<!\/)\/+$/, '');
  for (const { method, path } of matchedRoutes(context)) {
    // A middleware, of this app or of the one that it is mounted in.
    if (method === 'ALL' || !path.startsWith(`${mount}/`)) continue;
    const described = describedPath(path.slice(mount.length));
    const route = `${method} ${described}`;
    const rule = rules[route];
    if (rule) return rule;
    const isOurs = described.startsWith('/api/') && !described.includes('*');
    if (isOurs) throw new Error(`${route} has no scope: declare it with defineRoute`);
  }
  return null;
}

/** Throws `Refusal` unless the caller has this scope. */
export function checkScope(principal: Principal, scope: Scope): void {
  checkAny(principal, [scope]);
}

/** Throws `Refusal` unless the caller has one of these scopes. */
export function checkAny({ scopes }: Principal, needs: readonly Scope[]): void {
  const [first] = needs;
  if (first === undefined || needs.some((scope) => scopes.includes(scope))) return;
  throw new Refusal(403, 'scope_missing', `this needs the scope "${needs.join('" or "')}"`, { scope: first });
}

/** Administrators of the default tenant administer the whole server. */
export function isServerAdmin({ tenant, scopes, conversations }: Principal): boolean {
  return tenant === DEFAULT_TENANT && conversations === null && scopes.includes('admin');
}

/** The body, with the caller's own author if it has none. */
export function withAuthor({ author }: Principal, body: unknown): unknown {
  const isSilent =
    typeof body === 'object' && body !== null && !Array.isArray(body) && !Object.hasOwn(body, 'author');
  return author && isSilent ? { ...body, author } : body;
}

/** Checks that a caller may write as this author: as itself, or as any person if it has no author. Throws `Refusal`. */
export function checkAuthor({ author, scopes }: Principal, given: Author): void {
  if (author) {
    if (isSameAuthor(author, given)) return;
    const own = `${author.kind} "${author.id}" with the name "${author.name}"`;
    throw refused(`this caller may only write as ${own}: leave out the author`, given);
  }
  if (given.kind === 'user' || scopes.includes('operate')) return;
  throw refused(`writing as the ${given.kind} "${given.id}" needs the scope "operate"`, given);
}

/** Checks that a caller may import messages of any author. Throws `Refusal`. */
export function checkAllAuthors({ author, scopes }: Principal): void {
  if (author === null && scopes.includes('operate')) return;
  const message =
    'a transcript has messages of agents: importing it needs the scope "operate" and a caller without an author';
  throw new Refusal(403, 'author_refused', message);
}

/**
 * The author who would decide on behalf of the caller: the caller's own author, else the named person, else the operator.
 * Throws `Refusal` if the named person is not the caller's own author.
 */
export function deciderFor(principal: Principal, person: string | undefined): Author {
  // A caller that may not write decides nothing, like the system: only people decide.
  if (!principal.scopes.includes('write')) return SYSTEM_AUTHOR;
  const own = principal.author ?? OPERATOR;
  const author = person === undefined ? own : { ...own, id: person };
  checkAuthor(principal, author);
  return author;
}

function refused(message: string, { kind, id }: Author): Refusal {
  return new Refusal(403, 'author_refused', message, { author: { kind, id } });
}

function isSameAuthor(a: Author, b: Author): boolean {
  return a.kind === b.kind && a.id === b.id && a.name === b.name;
}

/** The error for ids that do not exist. */
export function unknownConversation(conversation: string): TroupeError {
  const message = `there is no conversation "${conversation}"`;
  return new TroupeError('conversation_unknown', message, { conversation });
}

/**
 * Checks that a caller may send a message now: the conversation, the author, then the author's rate. This order matters: a
 * refused message must not use up the rate of the author it names. Throws `conversation_unknown` and `Refusal`.
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

/** Rights of a new key. */
interface Reach {
  scopes: readonly Scope[];
  author?: Author | null | undefined;
  /** Absent or null: all conversations. */
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

/** Whether the caller may see a key or webhook. One that reaches beyond the caller's grant is hidden. */
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
