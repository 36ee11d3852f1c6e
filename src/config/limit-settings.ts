import * as z from 'zod';

/** Limits of one provider, over all processes. */
const ProviderCaps = z.strictObject({
  /** Most concurrent turns. Default: no limit. */
  turns: z.int().min(1).optional(),
  callsPerMinute: z.int().min(1).optional(),
  /** Calls allowed at once after a pause. Default: a tenth of `callsPerMinute`. */
  burst: z.int().min(1).optional(),
});

/** The `limits` block of a definition. */
export const LimitSettings = z
  .strictObject({
    /** How long an actor stays assigned to a process that has died, ms. Default 30 s. */
    leaseMs: z.int().min(1_000).optional(),
    /** Pause between searches for work whose wake was lost, ms. Default 20 s. */
    sweepMs: z.int().min(500).optional(),
    maxAttempts: z.int().min(1).optional(),
    maxSteps: z.int().min(1).optional(),
    /** Consecutive steps whose calls return only what the turn has seen before; then it ends. Default 10. */
    maxRepeats: z.int().min(1).optional(),
    /** Longest chain of messages from agent to agent since a person spoke. Default 64. */
    maxHops: z.int().min(1).optional(),
    /** Most turns in one conversation since a person spoke. Default 200. */
    maxAgentTurns: z.int().min(1).optional(),
    /** Deepest nesting of tasks. Default 5. */
    maxDepth: z.int().min(1).optional(),
    /** Most open tasks of one agent in one conversation. Default 64. */
    maxOpenTasks: z.int().min(1).optional(),
    /** Most tasks, at any depth, that one message of a person or a schedule may cause. Default 1,000. */
    maxTreeTasks: z.int().min(1).optional(),
    /** Most of those tasks open at once. Default 256. */
    maxTreeOpen: z.int().min(1).optional(),
    /** Most tokens of the model calls for those tasks, prompts and answers together. Default 100,000,000. */
    maxTreeTokens: z.int().min(1).optional(),
    /** Deadline of a task, ms: then it is cancelled. Default 1 day. */
    taskMs: z.int().min(1).optional(),
    /** Deadline of a question, ms: then it can no longer be answered. Default 1 week. */
    questionMs: z.int().min(1).optional(),
    /** Deadline of an approval, ms: then it is denied. Default 1 week. */
    approvalMs: z.int().min(1).optional(),
    previewBytes: z.int().min(256).optional(),
    /** Most concurrent turns of one tenant, over all processes. Default: no limit. */
    turnsPerTenant: z.int().min(1).optional(),
    /** Most actors of one tenant waiting for a turn. Above it, messages that would wake one are refused, and tasks. Default 50,000. */
    pendingPerTenant: z.int().min(1).optional(),
    /** Limits by name of the provider. */
    providers: z.record(z.string(), ProviderCaps).optional(),
  })
  .default({});
