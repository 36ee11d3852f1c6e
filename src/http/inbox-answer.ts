import * as z from 'zod';
import { AgentId, ConversationId } from '../events/index.ts';
import { type Standing, STANDING_STATES } from '../library/projection/standing.ts';

const Count = z.int().nonnegative();
const Time = z.number();
const Saying = z.strictObject({ name: z.string(), text: z.string() });

export const StateName = z.enum(STANDING_STATES);

const STANDING = {
  state: StateName,
  since: Time,
  began: Time,
  agents: z.array(
    z.strictObject({
      id: AgentId,
      condition: z.enum(['failed', 'waiting', 'running', 'held', 'paused', 'idle', 'retired', 'left']),
    }),
  ),
  agentCount: Count,
  people: z.array(z.strictObject({ id: z.string(), name: z.string() })),
  about: Saying.nullable(),
  last: Saying.nullable(),
  tokens: Count,
  dollars: z.number().nonnegative().nullable(),
  turns: Count,
  failedTurns: Count,
  failure: z.strictObject({ agent: AgentId, code: z.string(), message: z.string() }).nullable(),
  asks: z
    .strictObject({
      count: Count,
      task: z.string(),
      at: Time,
      agent: AgentId,
      kind: z.enum(['question', 'approval']),
      text: z.string(),
      decide: z.strictObject({ request: z.string(), argsHash: z.string() }).nullable(),
    })
    .nullable(),
};

/** The stored form of a standing. One of another form is computed anew. */
export const StandingRecord: z.ZodType<Standing> = z.strictObject(STANDING);

export const InboxAnswer = z.strictObject({
  counts: z.record(StateName, Count),
  unread: Count,
  costs: z.enum(['dollars', 'tokens']),
  lines: z.array(z.strictObject({ ...STANDING, id: ConversationId, head: Count, at: Time })),
  next: z.string().nullable(),
});
