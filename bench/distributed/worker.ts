import { createTroupe } from '../../src/index.ts';
import { ONE_AGENT, stop } from '../support.ts';

/**
 * One worker process of `workers.ts`: serves until it gets the message to end. Arguments: MongoDB URL, Redis URL,
 * prefix.
 */
const [mongodb = '', redis = '', prefix = ''] = process.argv.slice(2);
const troupe = await createTroupe(ONE_AGENT, { mongodb, redis, prefix, concurrency: 16, onWarning: stop });
process.on('message', () => {
  void troupe.close().then(() => process.disconnect());
});
process.send?.('ready');
