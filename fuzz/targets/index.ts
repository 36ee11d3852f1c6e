import type { Target } from '../target.ts';

/** Each target's relative share of a mixed run. */
export const SHARES: Readonly<Record<string, number>> = {
  events: 500,
  fences: 100,
  imports: 190,
  routes: 150,
  frames: 50,
  regex: 10,
  'hostile-model': 50,
  'vendor-streams': 30,
  'tool-schemas': 10,
  'odd-model': 60,
  'hostile-mcp': 20,
  'costly-logs': 2,
};

export const TARGETS: Readonly<Record<string, () => Promise<Target>>> = {
  events: async () => (await import('./events.ts')).eventsTarget(),
  fences: async () => (await import('./fences.ts')).fencesTarget(),
  imports: async () => (await import('./imports.ts')).importsTarget(),
  routes: async () => (await import('./routes.ts')).routesTarget(),
  frames: async () => (await import('./frames.ts')).framesTarget(),
  'hostile-model': async () => (await import('./hostile-model.ts')).hostileModelTarget(),
  'vendor-streams': async () => (await import('./vendor-streams.ts')).vendorStreamsTarget(),
  'tool-schemas': async () => (await import('./tool-schemas.ts')).toolSchemasTarget(),
  'odd-model': async () => (await import('./odd-model.ts')).oddModelTarget(),
  'hostile-mcp': async () => (await import('./hostile-mcp.ts')).hostileMcpTarget(),
  'costly-logs': async () => (await import('./costly-logs.ts')).costlyLogsTarget(),
  regex: openRegex,
};

async function openRegex(): Promise<Target> {
  const [{ regexTarget }, { composedExpressions, literalsIn }] = await Promise.all([
    import('./regex.ts'),
    import('../expressions/index.ts'),
  ]);
  return regexTarget(undefined, [...literalsIn(), ...(await composedExpressions())]);
}
