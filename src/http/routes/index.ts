import { TroupeError } from '../../base/errors.ts';
import type { Door } from '../../library/integrations/door.ts';
import type { RouteRules } from '../permissions.ts';
import { routesOf, type Route, routeName } from '../route.ts';
import { answerRoute, conversationRoutes, turnRoutes } from './conversations.ts';
import { inspectorRoutes } from './inspector.ts';
import { keyRoutes, peopleRoutes, webhookRoutes } from './tenant.ts';
import { metricsRoute, probeRoutes, statusRoutes } from './status.ts';
import { streamRoute, transferRoutes } from './log.ts';

/** All routes, in the order of the document. */
const DECLARED = [
  ...conversationRoutes,
  answerRoute,
  ...inspectorRoutes,
  ...transferRoutes,
  ...turnRoutes,
  streamRoute,
  ...statusRoutes,
  ...peopleRoutes,
  ...keyRoutes,
  ...webhookRoutes,
  metricsRoute,
  ...probeRoutes,
] as const;

export const ROUTES: readonly Route[] = DECLARED;

/** Every route by its name, for the types of the client. */
export type Routes = {
  [R in (typeof DECLARED)[number] as `${R['method']} ${R['path']}`]: R;
};

/** The routes of an app, prepared for lookups with each request. */
export interface RouteTable {
  doors: readonly string[];
  /** Routes in the order of the document. */
  routes: readonly Route[];
  /** The guard refuses routes that are not here. Public routes are not here, because they are answered before the guard. */
  rules: RouteRules;
  /** The methods allowed at a path below the mount; none for an unknown path. */
  methodsOf(path: string): readonly string[];
}

/** Throws `config_invalid` for two doors of the same name, and for two routes of the same method and path. */
export function routeTable(doors: readonly Door[] = []): RouteTable {
  refuseTwins(doors.map(({ name }) => `doors named "${name}"`));
  const routes = doors.length === 0 ? ROUTES : [...ROUTES, ...doors.flatMap(routesOf)];
  refuseTwins(routes.map((route) => `routes ${routeName(route)}`));
  const methods = new Map<string, string[]>();
  for (const { method, path } of routes)
    methods.set(path, [...(methods.get(path) ?? []), method, ...(method === 'GET' ? ['HEAD'] : [])]);
  const paths = [...methods].map(
    ([path, each]) =>
      [new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`), each] as const,
  );
  return {
    doors: doors.map(({ name }) => name),
    routes,
    rules: Object.fromEntries(
      routes.flatMap((route) => {
        const { scopes, needsNoToken } = route;
        return scopes === 'public' ? [] : [[routeName(route), { scopes, needsNoToken }]];
      }),
    ),
    methodsOf: (path) => paths.find(([pattern]) => pattern.test(path))?.[1] ?? [],
  };
}

function refuseTwins(names: readonly string[]): void {
  const twin = names.find((name, index) => names.indexOf(name) !== index);
  if (twin !== undefined) throw new TroupeError('config_invalid', `there are two ${twin}`);
}
