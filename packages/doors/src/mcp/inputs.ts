import * as z from 'zod';

/** Clients commonly give up a request after 60 s. */
const WAIT_S = 45;
const MOST_WAIT_S = 600;
const MOST_CHARS = 500_000;

const waitOf = (seconds: number) =>
  z
    .number()
    .min(0)
    .max(MOST_WAIT_S)
    .default(seconds)
    .describe(`Longest wait for the answer, in seconds. Default ${seconds}. The work goes on after it`);
const Conversation = z.string().min(1).max(128).describe('Id of the conversation');

/** What to ask an agent that the tool names. */
export const AskAgentInput = z.object({
  message: z
    .string()
    .min(1)
    .max(MOST_CHARS)
    .describe('What the agent is to answer or do, with all it needs to know'),
  conversation: Conversation.optional().describe(
    'Id of the conversation to go on with, as an earlier answer gave it. Default: a new one, which knows nothing of earlier ones',
  ),
  wait: waitOf(WAIT_S),
});
export type AskAgentInput = z.infer<typeof AskAgentInput>;

/** What to ask the company. */
export const AskInput = AskAgentInput.extend({
  agent: z.string().min(1).max(128).optional().describe('Id of the agent. Default: whoever is responsible'),
});
export type AskInput = z.infer<typeof AskInput>;

/** How to run a workflow that the tool names. */
export const RunInput = z.object({
  directive: z.string().min(1).max(MOST_CHARS).optional().describe('Purpose of this run'),
  conversation: AskAgentInput.shape.conversation,
  wait: waitOf(WAIT_S),
});
export type RunInput = z.infer<typeof RunInput>;

export const StatusInput = z.object({
  id: z.string().min(1).max(200).describe('Id of the answer, as "ask" gave it'),
  wait: waitOf(0),
});
export type StatusInput = z.infer<typeof StatusInput>;

export const AnswerInput = z.object({
  conversation: Conversation,
  question: z.string().min(1).max(256).describe('Id of the question'),
  text: z.string().min(1).max(MOST_CHARS).describe('The answer'),
  wait: waitOf(WAIT_S),
});
export type AnswerInput = z.infer<typeof AnswerInput>;

export const DecideInput = z.object({
  conversation: Conversation,
  request: z.string().min(1).max(256).describe('Id of the request for approval'),
  approved: z
    .boolean()
    .describe('Whether the call may run. Decide only as the person you act for has told you'),
  note: z.string().max(10_000).optional().describe('A note for the agent'),
  wait: waitOf(WAIT_S),
});
export type DecideInput = z.infer<typeof DecideInput>;

export const CancelInput = z.object({
  conversation: Conversation,
  task: z
    .string()
    .min(1)
    .max(256)
    .default('all')
    .describe(
      'Id of a question, a request or a task. Default: everything that was started in the conversation',
    ),
  reason: z.string().max(1_000).optional().describe('Shown to the agents'),
});
export type CancelInput = z.infer<typeof CancelInput>;
