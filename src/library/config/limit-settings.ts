import * as z from 'zod';

/** Limits of one provider, over all processes. */
export interface ProviderLimits {
  /** Most turns at once. Default: no limit. */
  turns?: number | undefined;
  /** Most model calls in a minute. Default: no limit. */
  callsPerMinute?: number | undefined;
  /** Calls allowed at once after a pause. Default: a tenth of `callsPerMinute`. */
  burst?: number | undefined;
}

/** The `limits` block of a definition. All fields are optional; times are in milliseconds. */
export interface LimitInput {
  /** How long an actor stays assigned to a process that has died, ms. At least 1,000. Default 30,000. */
  leaseMs?: number | undefined;
  /** Pause between searches for work whose wake was lost, ms. At least 500. Default 20,000. */
  sweepMs?: number | undefined;
  /** Most starts of one turn; a turn that kills its process this often is given up as failed. Default 5. */
  maxAttempts?: number | undefined;
  /** Most model calls in one turn; then it fails and tells people how to go on. Default 50. */
  maxSteps?: number | undefined;
  /** Consecutive steps whose calls return only what the turn has seen before; then it ends. Default 10. */
  maxRepeats?: number | undefined;
  /** Longest chain of messages from agent to agent since a person spoke. Default 64. */
  maxHops?: number | undefined;
  /** Most turns in one conversation since a person spoke. Default 200. */
  maxAgentTurns?: number | undefined;
  /** Deepest nesting of tasks. Default 5. */
  maxDepth?: number | undefined;
  /** Most open tasks of one agent in one conversation. Default 64. */
  maxOpenTasks?: number | undefined;
  /** Most tasks, at any depth, that one message of a person or a schedule may cause. Default 1,000. */
  maxTreeTasks?: number | undefined;
  /** Most of those tasks open at once. Default 256. */
  maxTreeOpen?: number | undefined;
  /** Most tokens of the model calls for those tasks, prompts and answers together. Default 100,000,000. */
  maxTreeTokens?: number | undefined;
  /** Deadline of a task, ms: then it is cancelled. Default 1 day. */
  taskMs?: number | undefined;
  /** Deadline of a question, ms: then it can no longer be answered. Default 1 week. */
  questionMs?: number | undefined;
  /** Deadline of an approval, ms: then it is denied. Default 1 week. */
  approvalMs?: number | undefined;
  /** Bytes of a tool output in a prompt; the rest is an artifact that the agent can read. At least 256. Default 8,192. */
  previewBytes?: number | undefined;
  /** Without a word of the model for this long, a turn counts as stuck, ms. Default 180,000. */
  stuckModelMs?: number | undefined;
  /** In the same tools for this long, a turn counts as stuck, ms. Default 600,000. */
  stuckToolsMs?: number | undefined;
  /** With failing model calls for this long, a turn counts as stuck, ms. Default 60,000. */
  stuckBackoffMs?: number | undefined;
  /** Waiting for this long before its turn begins, an agent counts as stuck, ms. Default 30,000. */
  stuckSlotMs?: number | undefined;
  /** Without an answer of a person for this long, a question or an approval counts as stuck, ms. Default 86,400,000, a day. */
  stuckAnswerMs?: number | undefined;
  /** Most turns of one tenant at once, over all processes. Default: no limit. */
  turnsPerTenant?: number | undefined;
  /**
   * Most actors of one tenant waiting for a turn. Above it, tasks and messages that would wake one are refused with
   * `tenant_busy`. Default 50,000.
   */
  pendingPerTenant?: number | undefined;
  /** Limits by name of the provider, such as `anthropic`. Default: none. */
  providers?: Record<string, ProviderLimits> | undefined;
}

const ProviderCaps = z.strictObject({
  turns: z.int().min(1).optional(),
  callsPerMinute: z.int().min(1).optional(),
  burst: z.int().min(1).optional(),
});

/** The `limits` block of a definition. */
export const LimitSettings = z
  .strictObject({
    leaseMs: z.int().min(1_000).optional(),
    sweepMs: z.int().min(500).optional(),
    maxAttempts: z.int().min(1).optional(),
    maxSteps: z.int().min(1).optional(),
    maxRepeats: z.int().min(1).optional(),
    maxHops: z.int().min(1).optional(),
    maxAgentTurns: z.int().min(1).optional(),
    maxDepth: z.int().min(1).optional(),
    maxOpenTasks: z.int().min(1).optional(),
    maxTreeTasks: z.int().min(1).optional(),
    maxTreeOpen: z.int().min(1).optional(),
    maxTreeTokens: z.int().min(1).optional(),
    taskMs: z.int().min(1).optional(),
    questionMs: z.int().min(1).optional(),
    approvalMs: z.int().min(1).optional(),
    previewBytes: z.int().min(256).optional(),
    stuckModelMs: z.int().min(1).optional(),
    stuckToolsMs: z.int().min(1).optional(),
    stuckBackoffMs: z.int().min(1).optional(),
    stuckSlotMs: z.int().min(1).optional(),
    stuckAnswerMs: z.int().min(1).optional(),
    turnsPerTenant: z.int().min(1).optional(),
    pendingPerTenant: z.int().min(1).optional(),
    providers: z.record(z.string(), ProviderCaps).optional(),
  })
  .default({});
