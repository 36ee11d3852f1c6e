import type { Context } from 'hono';
import { baseRoutePath, matchedRoutes } from 'hono/route';
import type { Principal, Scope } from '../../access/index.ts';
import { DEFAULT_TENANT } from '../../events/index.ts';
import { Refusal } from '../refusal.ts';
import { describedPath, ROUTE_SCOPES } from './route-scopes.ts';

/** Whether the caller may ask for this route at all. Throws `Refusal`, and for a route that nobody has given a scope. */
export function checkRoute(context: Context, principal: Principal): void {
  // As it is written and not as it was asked for, like the paths below: it may have parameters.
  const mount = baseRoutePath(context).replace(/(?<!\/)\/+$/, '');
  for (const { method, path } of matchedRoutes(context)) {
    // Middleware, ours and that of the app this one is mounted in.
    if (method === 'ALL' || !path.startsWith(`${mount}/`)) continue;
    const described = describedPath(path.slice(mount.length));
    const route = `${method} ${described}`;
    const needs = ROUTE_SCOPES[route];
    if (needs) return checkAny(principal, needs);
    const isOurs = described.startsWith('/api/') && !described.includes('*');
    if (isOurs) throw new Error(`${route} has no scope in route-scopes.ts`);
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

/** What is of the whole server is for those who run it: the administrators of its own tenant. */
export function isOfTheHouse({ tenant, scopes, conversations }: Principal): boolean {
  return tenant === DEFAULT_TENANT && conversations === null && scopes.includes('admin');
}
