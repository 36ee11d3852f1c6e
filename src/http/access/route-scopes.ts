import type { Scope } from '../../access/index.ts';
import type { Command } from '../../events/index.ts';

/** One of these is needed; where none is named, whoever is known may ask. */
type Needs = readonly Scope[];

/** The one table of what each route needs, as it stands in the API's description. A route that is not here answers nobody. */
export const ROUTE_SCOPES: Readonly<Record<string, Needs>> = {
  'GET /api/conversations': ['read'],
  'GET /api/overview': ['read'],
  'GET /api/search': ['read'],
  'GET /api/conversations/{c}': ['read'],
  'POST /api/conversations/{c}/events': ['write'],
  'GET /api/conversations/{c}/events': ['read'],
  'GET /api/conversations/{c}/actors': ['read'],
  'GET /api/conversations/{c}/snapshot': ['read'],
  'GET /api/conversations/{c}/rows': ['read'],
  'GET /api/conversations/{c}/tasks': ['read'],
  'GET /api/conversations/{c}/agents/{a}/prompt': ['read'],
  'GET /api/conversations/{c}/agents/{a}/cost': ['read'],
  'DELETE /api/conversations/{c}': ['operate'],
  'GET /api/conversations/{c}/export': ['read'],
  'GET /api/turns/{t}': ['read'],
  'GET /api/turns/{t}/prompt': ['read'],
  'GET /api/turns/{a}/diff/{b}': ['read'],
  // Which of them, the command says: `commandScope`.
  'POST /api/commands': ['write', 'operate'],
  'GET /api/events': ['read'],
  'POST /api/import': ['write'],
  'GET /api/agents': ['read'],
  'GET /api/budgets': ['read'],
  'GET /api/charts': ['read'],
  'GET /api/queues': ['read'],
  'GET /api/openapi.json': ['read'],
  'GET /api/whoami': [],
  'GET /api/keys': ['admin'],
  'POST /api/keys': ['admin'],
  'POST /api/keys/{id}/rotate': ['admin'],
  'DELETE /api/keys/{id}': ['admin'],
  'GET /api/webhooks': ['admin'],
  'POST /api/webhooks': ['admin'],
  'GET /api/webhooks/{id}': ['admin'],
  'DELETE /api/webhooks/{id}': ['admin'],
  'POST /api/webhooks/{id}/test': ['admin'],
  'POST /api/webhooks/{id}/rotate': ['admin'],
  'GET /api/nostr': ['admin'],
  'GET /metrics': ['admin'],
};

/** They stand before the guard. */
export const PUBLIC_ROUTES: ReadonlySet<string> = new Set(['GET /healthz', 'GET /readyz']);

const METHODS = new Map<string, string[]>();
for (const route of [...Object.keys(ROUTE_SCOPES), ...PUBLIC_ROUTES]) {
  const [method = '', path = ''] = route.split(' ');
  METHODS.set(path, [...(METHODS.get(path) ?? []), method, ...(method === 'GET' ? ['HEAD'] : [])]);
}
const PATHS = [...METHODS].map(
  ([path, methods]) =>
    [new RegExp(`${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`), methods] as const,
);

/** What a path, wherever the API is mounted, answers to; none: it is no path of ours. */
export function methodsOf(path: string): readonly string[] {
  return PATHS.find(([pattern]) => pattern.test(path))?.[1] ?? [];
}

/** What people say to what agents wait for. */
const WRITES: ReadonlySet<Command['command']> = new Set(['answer', 'decide', 'cancelTask']);

export function commandScope({ command }: Command): Scope {
  return WRITES.has(command) ? 'write' : 'operate';
}

/** As the API's description writes it: `/api/turns/:t{[^/]*}` is `/api/turns/{t}`. */
export function describedPath(path: string): string {
  return path.replace(/:(\w+)(?:\{[^{}]*\})?/g, '{$1}');
}
