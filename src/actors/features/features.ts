import { budget } from './budget/feature.ts';
import { checkpoints } from './checkpoints/feature.ts';
import { compaction } from './compaction/feature.ts';
import type { Feature, FeatureCommands, FeatureParts, Features } from '../attempt/turn-run.ts';
import { memory } from './memory/feature.ts';
import { reruns } from './reruns/feature.ts';
import { schedules } from './schedules/feature.ts';
import { sessions } from './sessions/feature.ts';
import { steering } from './steering/feature.ts';
import { supervision } from './supervision/feature.ts';
import { workflows } from './workflows/feature.ts';

/**
 * Features that only some companies use, in the order in which a turn uses them. Each folder can be deleted together with its
 * two lines here; `test/features.test.ts` tries that.
 */
const FEATURES: readonly Feature[] = [
  schedules, // messages at fixed times
  checkpoints, // stored folds of long logs
  memory, // retrieved memories
  reruns, // turns run again in a fork
  sessions, // providers that remember
  steering, // messages to an agent at work
  compaction, // carries out the strategies
  budget, // what calls may cost
  supervision, // checks before a turn may end
  workflows, // runs and phases
];

export function openFeatures(parts: FeatureParts): Features {
  return Object.assign({}, ...FEATURES.map((feature) => feature.open(parts))) as Features;
}

export function featureCommands(): FeatureCommands {
  return Object.assign({}, ...FEATURES.map(({ commands = {} }) => commands)) as FeatureCommands;
}

export async function closeFeatures({ checkpoints: stored, memory: search }: Features): Promise<void> {
  // The search may still store parts of its index.
  await search?.close();
  await stored?.close();
}
