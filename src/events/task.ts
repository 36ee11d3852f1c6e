import * as z from 'zod';
import { AgentId, ConversationId } from './ids.ts';
import { JsonData } from './message.ts';

/**
 * Child tasks: what an agent has asked of somebody and waits for. One record for all of them: `delegate`, `ask` and
 * `followUp` go to an agent, who works in a conversation of its own, the thread; `question` and `approval` go to people.
 * A task is opened by one event and ended by one event, whose id only one writer can take: the first end counts.
 */
export const TaskId = z.string().min(1).max(64);
export type TaskId = z.infer<typeof TaskId>;

/** When the tasks that one turn has opened together wake their owner again. */
export const Join = z.enum(['all', 'first', 'any']);
export type Join = z.infer<typeof Join>;

/** A task that others are part of, and the log that its end stands in. */
export const TaskPlace = z.strictObject({ delegation: TaskId, home: ConversationId });
export type TaskPlace = z.infer<typeof TaskPlace>;

/** In the log of the delegator (`home`), where it addresses nobody, and as the first event of the thread, to the assignee. */
export const DelegationOpenedBody = z.strictObject({
  delegation: TaskId,
  how: z.enum(['delegate', 'ask', 'followUp']),
  delegator: AgentId,
  assignee: AgentId,
  task: z.string(),
  /** Where the delegator works. */
  home: ConversationId,
  /** Where the assignee works: its own for every task but a follow-up, which goes on in that of the first. */
  thread: ConversationId,
  /** The conversation that all this began in. */
  root: ConversationId,
  /** Tasks of one group wake their owner together: those that one turn has opened. */
  group: z.string(),
  join: Join,
  /** Who delegated to whom to get here, the delegator last. */
  chain: z.array(AgentId),
  /** The tasks that it is part of, the outermost first: where one of them has ended, this one is over. */
  within: z.array(TaskPlace).optional(),
  /** Names what it is counted with: all that came of one message in `root`. */
  tree: z.string().max(64).optional(),
  /** Ends it as aborted, ms since the epoch. */
  deadline: z.int().nonnegative().optional(),
});
export type DelegationOpenedBody = z.infer<typeof DelegationOpenedBody>;

/**
 * The end of a delegation, to the delegator in its log; in the thread the same, addressed to nobody, or for an abort
 * from above to the assignee.
 */
export const DelegationEndedBody = z.strictObject({
  delegation: TaskId,
  outcome: z.enum(['done', 'failed', 'aborted']),
  /** The assignee's words; of a failure or an abort, why. */
  result: z.string(),
  data: JsonData.optional(),
});
export type DelegationEndedBody = z.infer<typeof DelegationEndedBody>;

/** Of an agent to people: its author waits for the answer. */
export const QuestionBody = z.strictObject({
  question: TaskId,
  text: z.string(),
  /** Ids of those who may answer; nobody named: every person. */
  by: z.array(z.string()).default([]),
  choices: z.array(z.string()).optional(),
  group: z.string(),
  join: Join,
  deadline: z.int().nonnegative().optional(),
});
export type QuestionBody = z.infer<typeof QuestionBody>;

export const QuestionAnsweredBody = z.strictObject({
  question: TaskId,
  outcome: z.enum(['answered', 'expired', 'withdrawn']),
  content: z.string(),
});
export type QuestionAnsweredBody = z.infer<typeof QuestionAnsweredBody>;

/** A call that does not run before a person has agreed to exactly this. */
export const ApprovalRequestedBody = z.strictObject({
  request: TaskId,
  tool: z.string(),
  /** As the model wrote them: what is approved is what runs. */
  args: z.string(),
  argsHash: z.string(),
  /** Ids of those who may decide; nobody named: every person. */
  by: z.array(z.string()).default([]),
  deadline: z.int().nonnegative().optional(),
});
export type ApprovalRequestedBody = z.infer<typeof ApprovalRequestedBody>;

export const ApprovalDecidedBody = z.strictObject({
  request: TaskId,
  outcome: z.enum(['approved', 'denied', 'expired', 'withdrawn']),
  note: z.string().default(''),
});
export type ApprovalDecidedBody = z.infer<typeof ApprovalDecidedBody>;
