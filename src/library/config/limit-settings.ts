import * as z from 'zod';
import type { InputOf } from '../../base/input-of.ts';

const Count = z.int().min(1).optional();
const Milliseconds = z.int().min(1).optional();

const ProviderCaps = z.strictObject({
  /** Most turns at once. Default: no limit. */
  turns: Count,
  /** Most model calls in a minute, a tenth of them at once after a pause. Default: no limit. */
  callsPerMinute: Count,
});
/** Limits of one provider, over all processes. */
export interface ProviderLimits extends InputOf<typeof ProviderCaps> {}

const Limits = z.strictObject({
  /**
   * How long an actor stays assigned to a process that has died, ms; work whose wake was lost is found within twice that.
   * At least 1,000. Default 10,000.
   */
  leaseMs: z.int().min(1_000).optional(),
  /** Most model calls in one turn; then it fails and tells people how to go on. Default 50. */
  maxSteps: Count,
  /** Most turns in one conversation since a person spoke. Default 200. */
  maxAgentTurns: Count,
  /** Most tasks, at any depth, that one message of a person or a schedule may cause. Default 1,000. */
  maxTreeTasks: Count,
  /** Deadline of a task, ms: then it is cancelled. Default 1 day. */
  taskMs: Milliseconds,
  /** Deadline of a question, ms: then it can no longer be answered. Default 1 week. */
  questionMs: Milliseconds,
  /** Deadline of an approval, ms: then it is denied. Default 1 week. */
  approvalMs: Milliseconds,
  /** Most turns of one tenant at once, over all processes. Default: no limit. */
  turnsPerTenant: Count,
  /**
   * Most actors of one tenant waiting for a turn. Above it, tasks and messages that would wake one are refused with
   * `tenant_busy`. Default 50,000.
   */
  pendingPerTenant: Count,
  /** Limits by name of the provider, such as `anthropic`. Default: none. */
  providers: z.record(z.string(), ProviderCaps).optional(),
});
/** The `limits` block of a definition. All fields are optional; times are in milliseconds. */
export interface LimitInput extends InputOf<typeof Limits> {}

export const LimitSettings = Limits.default({});
