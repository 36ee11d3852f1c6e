import type { Context } from 'hono';
import { baseRoutePath, matchedRoutes } from 'hono/route';
import type { Principal, Scope } from '../../library/access/index.ts';
import { DEFAULT_TENANT } from '../../events/index.ts';
import { Refusal } from '../refusal.ts';
import { describedPath } from '../route.ts';

export type ScopeTable = Readonly<Record<string, readonly Scope[]>>;

/** Checks that the caller has a scope of the matched route. Throws `Refusal`, and `Error` for an undeclared route. */
export function checkRoute(context: Context, principal: Principal, table: ScopeTable): void {
  // The mount path as it is declared, like the paths below: it may have parameters.
  const mount = baseRoutePath(context).replace(/(?<!\/)\/+$/, '');
  for (const { method, path } of matchedRoutes(context)) {
    // Middleware, of this app or of the one it is mounted in.
    if (method === 'ALL' || !path.startsWith(`${mount}/`)) continue;
    const described = describedPath(path.slice(mount.length));
    const route = `${method} ${described}`;
    const needs = table[route];
    if (needs) return checkAny(principal, needs);
    const isOurs = described.startsWith('/api/') && !described.includes('*');
    if (isOurs) throw new Error(`${route} has no scope: declare it with defineRoute`);
  }
}

export function checkScope(principal: Principal, scope: Scope): void {
  checkAny(principal, [scope]);
}

function checkAny({ scopes }: Principal, needs: readonly Scope[]): void {
  const [first] = needs;
  if (first === undefined || needs.some((scope) => scopes.includes(scope))) return;
  throw new Refusal(403, 'scope_missing', `this needs the scope "${needs.join('" or "')}"`, { scope: first });
}

/** Administrators of the default tenant administer the whole server. */
export function isServerAdmin({ tenant, scopes, conversations }: Principal): boolean {
  return tenant === DEFAULT_TENANT && conversations === null && scopes.includes('admin');
}
