import { systemClock } from '../../src/base/clock.ts';
import { createTenants } from '../../src/library/facade/credentials.ts';
import { NO_METRICS } from '../../src/events/metrics.ts';
import { memoryKeyValue } from '../../src/base/key-value.ts';
import { createIntegrations, type Integrations } from '../../src/library/facade/integrations.ts';

/** For engines that stand alone: webhooks and keys live in memory, and nothing is delivered. */
export function noIntegrations(): Integrations {
  const notes = memoryKeyValue();
  return createIntegrations({
    keyValueOf: () => notes,
    tenants: createTenants(notes),
    secret: 'none',
    integrations: [],
    clock: systemClock,
    random: Math.random,
    env: {},
    owner: 'nobody',
    metrics: NO_METRICS,
    onWarning: () => {},
  });
}
