import type { FeatureParts } from '../../actors/attempt/turn-run.ts';
import type { PolicyConstants } from '../config/context-settings.ts';
import type { EngineLimits } from '../../actors/actor/engine-deps.ts';

/** Constants with other values, for tests that cannot wait as long or write as much. No definition sets them. */
export interface Constants {
  /** Limits of the engine, whatever the definition says. */
  limits?: Partial<EngineLimits> | undefined;
  /** When and how far prompts are compacted. */
  policy?: PolicyConstants | undefined;
  /** How long turns wait for the vector of their question. */
  memory?: Pick<FeatureParts, 'deadlineMs' | 'firstDeadlineMs'> | undefined;
}
