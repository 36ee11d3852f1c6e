import * as z from 'zod';
import { AgentId, ConversationId } from './ids.ts';
import { Attachment, JsonData, MAX_MESSAGE_ATTACHMENTS } from './message.ts';
import { ToldTo } from './turn.ts';

/**
 * A task is work that an agent has asked of another agent (a delegation) or of people (a question or an approval) and
 * waits for. The assignee of a delegation works in a separate conversation, the thread. One event opens a task and one
 * event ends it. The id of the end is fixed, so only the first end counts.
 */
export const TaskId = z.string().min(1).max(64);
export type TaskId = z.infer<typeof TaskId>;

/** When a group of tasks wakes its owner. */
export const Join = z.enum(['all', 'first', 'any']);
export type Join = z.infer<typeof Join>;

/** A task that contains others, and the conversation whose log has its end. */
export const TaskPlace = z.strictObject({ delegation: TaskId, home: ConversationId });
export type TaskPlace = z.infer<typeof TaskPlace>;

/** Written twice: in the delegator's log, without addressees, and as the first event of the thread, to the assignee. */
export const DelegationOpenedBody = z.strictObject({
  delegation: TaskId,
  how: z.enum(['delegate', 'ask', 'followUp']),
  delegator: AgentId,
  assignee: AgentId,
  task: z.string(),
  /** The delegator's conversation. */
  home: ConversationId,
  /** The assignee's conversation. A follow-up continues in the thread of the first task. */
  thread: ConversationId,
  /** The conversation in which the outermost task was opened. */
  root: ConversationId,
  /** The tasks that one turn opens are a group and wake their owner together. */
  group: z.string(),
  join: Join,
  /** Delegators from the root to here, the delegator of this task last. */
  chain: z.array(AgentId),
  /** The tasks that this one is part of, the outermost first. When one of them ends, this one is over. */
  within: z.array(TaskPlace).optional(),
  /** Id of the tree of tasks that one message in `root` has started. They are counted together. */
  tree: z.string().max(64).optional(),
  /** Attachments for the assignee, as in the conversation, with the hashes of their bytes. */
  attachments: z.array(Attachment).min(1).max(MAX_MESSAGE_ATTACHMENTS).optional(),
  /** When the task is cancelled, ms since the epoch. */
  deadline: z.int().nonnegative().optional(),
});
export type DelegationOpenedBody = z.infer<typeof DelegationOpenedBody>;

/** Characters of a task that its result repeats. */
export const MAX_TASK_EXCERPT = 160;

/**
 * The end of a delegation, addressed to the delegator. The thread has a copy without addressees; if the task was
 * cancelled, the copy addresses the assignee.
 */
export const DelegationEndedBody = z.strictObject({
  delegation: TaskId,
  outcome: z.enum(['done', 'failed', 'cancelled']),
  /** The assignee's answer, or why it failed or was cancelled. */
  result: z.string(),
  /** The beginning of the task, on one line. Absent in older logs. */
  task: z.string().max(MAX_TASK_EXCERPT).optional(),
  data: JsonData.optional(),
  /** Present if others are told. */
  told: ToldTo.optional(),
});
export type DelegationEndedBody = z.infer<typeof DelegationEndedBody>;

/** A question of an agent to people. The agent waits for the answer. */
export const QuestionBody = z.strictObject({
  question: TaskId,
  text: z.string(),
  /** Ids of the people who may answer. Empty: everyone. */
  by: z.array(z.string()).default([]),
  choices: z.array(z.string()).optional(),
  group: z.string(),
  join: Join,
  deadline: z.int().nonnegative().optional(),
});
export type QuestionBody = z.infer<typeof QuestionBody>;

export const QuestionAnsweredBody = z.strictObject({
  question: TaskId,
  outcome: z.enum(['answered', 'expired', 'cancelled']),
  content: z.string(),
});
export type QuestionAnsweredBody = z.infer<typeof QuestionAnsweredBody>;

/** A tool call that runs only after a person has approved it. */
export const ApprovalRequestedBody = z.strictObject({
  request: TaskId,
  tool: z.string(),
  /** Exactly as the model wrote them and as the call will use them. */
  args: z.string(),
  argsHash: z.string(),
  /** Ids of the people who may decide. Empty: everyone. */
  by: z.array(z.string()).default([]),
  deadline: z.int().nonnegative().optional(),
});
export type ApprovalRequestedBody = z.infer<typeof ApprovalRequestedBody>;

export const ApprovalDecidedBody = z.strictObject({
  request: TaskId,
  outcome: z.enum(['approved', 'denied', 'expired', 'cancelled']),
  note: z.string().default(''),
  /** The arguments that the call runs with, if the person changed them, and their hash. */
  args: z.string().optional(),
  argsHash: z.string().optional(),
  /** Present if others are told of the decision. `call` then has the requested call, its arguments shortened. */
  told: ToldTo.optional(),
  call: z.strictObject({ tool: z.string(), args: z.string() }).optional(),
});
export type ApprovalDecidedBody = z.infer<typeof ApprovalDecidedBody>;
