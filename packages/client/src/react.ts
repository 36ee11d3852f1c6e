export { useApprovals } from './use-approvals.ts';
export type { Approvals } from './use-approvals.ts';
export { useConversation } from './use-conversation.ts';
export type { ConversationOptions, ShownConversation, ShownMessage } from './use-conversation.ts';
