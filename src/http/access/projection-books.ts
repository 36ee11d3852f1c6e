import type { Context } from 'hono';
import { DEFAULT_TENANT, type TenantId } from '../../events/index.ts';
import type { Troupe } from '../../troupe.ts';
import { createProjectionBook, type ProjectionBook } from '../projection-book.ts';
import { callerOf } from './caller.ts';

/** Tenants whose projections are remembered, those that asked last. */
const MAX_TENANTS = 32;

/** Gives the caller of a request the projections of its tenant, and of those what it was granted. */
export type BookOf = (context: Context) => ProjectionBook;

export function createProjectionBooks(root: Troupe): BookOf {
  /** The last used one last. */
  const books = new Map<TenantId, ProjectionBook>();

  function bookOfTenant(tenant: TenantId): ProjectionBook {
    const troupe = tenant === DEFAULT_TENANT ? root : root.forTenant(tenant);
    const book = books.get(tenant) ?? createProjectionBook(troupe);
    books.delete(tenant);
    books.set(tenant, book);
    const [oldest] = books.keys();
    if (books.size > MAX_TENANTS && oldest !== undefined) books.delete(oldest);
    return book;
  }

  return function bookOf(context) {
    const { principal, troupe } = callerOf(context);
    const book = bookOfTenant(principal.tenant);
    if (principal.conversations === null) return book;
    // The projection is everybody's; whether the caller may have it, its own troupe says.
    const check = (conversation: string) => troupe.events(conversation, { after: 0, limit: 1 });
    return {
      async latest(conversation) {
        await check(conversation);
        return book.latest(conversation);
      },
      async at(conversation, seq) {
        await check(conversation);
        return book.at(conversation, seq);
      },
    };
  };
}
