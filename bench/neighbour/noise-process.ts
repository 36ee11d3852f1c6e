import { isNoise, makeNoise } from './noises.ts';
import type { Serving } from './process.ts';
import { tellUsage } from './usage.ts';

/**
 * Makes one kind of noise until its parent ends. A separate process, so that its work delays no measurement.
 */
const [name = '', serving = '{}'] = process.argv.slice(2);
process.on('disconnect', () => process.exit(0));
if (!isNoise(name)) throw new Error(`no such noise: ${name}`);
tellUsage();
await makeNoise(name, JSON.parse(serving) as Serving, () => process.send?.('loud'));
