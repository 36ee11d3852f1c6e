import { DELTA_CHANNEL } from './delta-channel.ts';
import { DURABLE_STEP } from './durable-step.ts';
import { HISTORY_GROWTH } from './history-growth.ts';
import type { Load } from './load.ts';
import { TAU } from './tau.ts';

export const LOADS: readonly Load[] = [TAU, DELTA_CHANNEL, DURABLE_STEP, HISTORY_GROWTH];
