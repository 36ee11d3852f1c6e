import * as z from 'zod';
import { Attachment, MAX_MESSAGE_ATTACHMENTS } from './attachment.ts';
import { AgentId } from './ids.ts';
import { JsonData } from './json-data.ts';

/** What was said, to everyone or to the agents in `to`. */
export const MessageBody = z.strictObject({
  content: z.string(),
  /** The same as JSON, where an agent must reply so; nobody else can say any. */
  data: JsonData.optional(),
  attachments: z.array(Attachment).min(1).max(MAX_MESSAGE_ATTACHMENTS).optional(),
});
export type MessageBody = z.infer<typeof MessageBody>;

/** A structured handing over of the conversation; it opens the receiver's next prompt. */
export const HandoffSummary = z.strictObject({
  goal: z.string().min(1),
  done: z.string().default(''),
  state: z.string().default(''),
  next: z.string().default(''),
  openQuestions: z.array(z.string()).default([]),
  artifacts: z.array(z.string()).default([]),
  why: z.string().default(''),
  /** Who wrote it; the handing agent where nothing is said, as in logs from before there was another. */
  by: z.enum(['agent', 'compactor', 'extraction']).optional(),
});
export type HandoffSummary = z.infer<typeof HandoffSummary>;

/** A summary as a tool asks for it: what is empty in it was left out. */
export const HandoffDraft = HandoffSummary.extend({ goal: z.string().default('') });
export type HandoffDraft = z.infer<typeof HandoffDraft>;

export const HandoffBody = z.strictObject({ summary: HandoffSummary });
export const JoinedBody = z.strictObject({ agent: AgentId, policy: z.enum(['full', 'summary', 'fresh']) });
/** `blocked`: what others than trusted people say to it wakes it no more. */
export const LeftBody = z.strictObject({
  agent: AgentId,
  reason: z.string().default(''),
  blocked: z.boolean().optional(),
});
export type LeftBody = z.infer<typeof LeftBody>;
/** A note of the runtime to an agent (supervision, nudge); `oneStep` notes are seen by its next step alone, and by nobody else. */
export const InjectionBody = z.strictObject({ content: z.string(), oneStep: z.boolean().default(false) });
