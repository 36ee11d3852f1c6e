import { createTroupe } from '../../src/index.ts';
import { NO_METRICS } from '../../src/events/metrics.ts';
import { FIFTY } from './fan-out-company.ts';

/** One worker process of `fan-out.ts`: serves until it gets the message to end, then sends its counts. */
const [mongodb = '', redis = '', prefix = ''] = process.argv.slice(2);
const counted = { turns: 0, retries: 0, leasesLost: 0 };
const troupe = await createTroupe(FIFTY, {
  mongodb,
  redis,
  prefix,
  concurrency: 16,
  onWarning: console.error,
  metrics: {
    ...NO_METRICS,
    count(name, _, by = 1) {
      if (name === 'turns') counted.turns += by;
      if (name === 'append_retries') counted.retries += by;
      if (name === 'leases_lost') counted.leasesLost += by;
    },
  },
});
process.on('message', () => {
  process.send?.(counted);
  void troupe.close().then(() => process.disconnect());
});
process.send?.('ready');
