import * as z from 'zod';
import { AgentId } from './ids.ts';
import { Mode } from './mode.ts';

/** Delegations, questions and approvals. A decision is an event of its own, with an id that only one writer can take. */
export const DelegationOpenedBody = z.strictObject({
  delegation: z.string(),
  assignee: AgentId,
  task: z.string(),
});
export const DelegationEndedBody = z.strictObject({ delegation: z.string(), result: z.string() });
export const QuestionBody = z.strictObject({ question: z.string(), text: z.string() });
export const ApprovalRequestedBody = z.strictObject({
  request: z.string(),
  tool: z.string(),
  argsHash: z.string(),
  text: z.string(),
});
export const ApprovalDecidedBody = z.strictObject({ request: z.string(), approved: z.boolean() });
export const ModeChangedBody = z.strictObject({ mode: Mode, run: z.string().optional() });
export const PhaseChangedBody = z.strictObject({ phase: z.string(), instructions: z.string().default('') });
/** What a run is for; `brief` is the present step of its workflow, which `status` is about. */
export const RunDirectiveBody = z.strictObject({
  run: z.string(),
  directive: z.string(),
  brief: z.string().default(''),
  status: z.enum(['active', 'completed']).default('active'),
});
export type RunDirectiveBody = z.infer<typeof RunDirectiveBody>;
