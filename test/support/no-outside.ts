import { systemClock } from '../../src/clock.ts';
import { createTenants } from '../../src/facade/credentials.ts';
import { NO_METRICS } from '../../src/metrics.ts';
import { memoryKeyValue } from '../../src/key-value.ts';
import { createOutside, type Outside } from '../../src/runtime/outside.ts';

/** For engines that stand alone: webhooks and keys that are gone with the process, and nothing is delivered. */
export function noOutside(): Outside {
  const notes = memoryKeyValue();
  return createOutside({
    keyValueOf: () => notes,
    tenants: createTenants(notes),
    secret: 'none',
    settings: {},
    clock: systemClock,
    random: Math.random,
    env: {},
    owner: 'nobody',
    metrics: NO_METRICS,
    onWarning: () => {},
  });
}
