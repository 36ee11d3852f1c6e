import type { Hono } from 'hono';
import type { Troupe } from '../../troupe.ts';
import { isOfTheHouse } from '../access/check-scope.ts';
import type { Gate } from '../access/gate.ts';
import { type GuardOptions, trustedCaller } from '../guard.ts';
import { createReadiness, type ReadinessOptions } from '../readiness.ts';

/**
 * What orchestrators and load balancers ask. They stand before the guard, as few of them can send a token or a name of
 * ours; who is no administrator of
 * the server learns that the process lives and whether it is ready, and no more.
 *  - `/healthz` asks no service: a database that is away is no reason to start every process anew.
 *  - `/readyz` is for the question whether to send work here.
 */
export function addProbeRoutes(
  app: Hono,
  troupe: Troupe,
  options: ReadinessOptions & { gate: Gate; trust: GuardOptions },
): void {
  const readiness = createReadiness(troupe, options);
  app.get('/healthz', (context) => context.json({ status: 'ok' }));
  app.get('/readyz', async (context) => {
    const { status, store, queue } = await readiness();
    const caller = await trustedCaller(context, options.gate, options.trust);
    const told = caller && isOfTheHouse(caller) ? { status, store, queue } : { status };
    if (status === 'ok') return context.json(told);
    return context.json(told, 503, { 'retry-after': '1' });
  });
}
