import type { Scope } from '../../library/access/index.ts';
import { type Route, routeName } from '../route.ts';
import { a2aRoutes } from './a2a.ts';
import { agUiRoutes } from './ag-ui.ts';
import { answerRoute, conversationRoutes, turnRoutes } from './conversations.ts';
import { chatRoutes } from './chat.ts';
import { inspectorRoutes } from './inspector.ts';
import { keyRoutes, peopleRoutes, webhookRoutes } from './tenant.ts';
import { mcpRoute } from './mcp.ts';
import { openAiRoutes } from './openai.ts';
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
  ...chatRoutes,
  ...openAiRoutes,
  ...agUiRoutes,
  mcpRoute,
  ...a2aRoutes,
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

/** Scopes by route name; one of them is needed. The guard refuses routes that are not here. */
export const ROUTE_SCOPES: Readonly<Record<string, readonly Scope[]>> = Object.fromEntries(
  ROUTES.flatMap((route) => (route.scopes === 'public' ? [] : [[routeName(route), route.scopes]])),
);

/** Routes that are answered before the guard. */
export const PUBLIC_ROUTES: ReadonlySet<string> = new Set(
  ROUTES.filter(({ scopes }) => scopes === 'public').map(routeName),
);

const METHODS = new Map<string, string[]>();
for (const { method, path } of ROUTES) {
  METHODS.set(path, [...(METHODS.get(path) ?? []), method, ...(method === 'GET' ? ['HEAD'] : [])]);
}
const PATHS = [...METHODS].map(
  ([path, methods]) =>
    [new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`), methods] as const,
);

/** The methods that a path below the mount answers to; none for an unknown path. */
export function methodsOf(path: string): readonly string[] {
  return PATHS.find(([pattern]) => pattern.test(path))?.[1] ?? [];
}
