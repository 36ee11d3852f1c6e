import * as z from 'zod';

/**
 * Ids are slugs, so that they can stand in URLs, file names and keys without escaping, and so that user text can
 * never reach a database key or operator. An `AgentId` additionally has no ':' because turn ids are split at it.
 */
const SLUG = /^[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}$/;
const AGENT_SLUG = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

export const TenantId = z.string().regex(SLUG).brand<'TenantId'>();
export type TenantId = z.infer<typeof TenantId>;
export const ConversationId = z
  .string()
  .regex(SLUG, 'a conversation id is 1 to 128 of A-Z a-z 0-9 . _ @ : - and starts with a letter or digit')
  .brand<'ConversationId'>();
export type ConversationId = z.infer<typeof ConversationId>;
export const AgentId = z
  .string()
  .regex(AGENT_SLUG, 'an agent id is 1 to 64 of A-Z a-z 0-9 _ - and starts with a letter or digit')
  .brand<'AgentId'>();
export type AgentId = z.infer<typeof AgentId>;
export const EventId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._@:-]{0,255}$/, 'an event id is 1 to 256 of A-Z a-z 0-9 . _ @ : -')
  .brand<'EventId'>();
export type EventId = z.infer<typeof EventId>;
/** `<conversation>:<agent>:<number>`, unique within a tenant. */
export const TurnId = z.string().max(220).brand<'TurnId'>();
export type TurnId = z.infer<typeof TurnId>;

export const DEFAULT_TENANT = 'default' as TenantId;

/** One agent in one conversation of one tenant: what a wake names and what owns an actor record. */
export const ActorAddress = z.object({ tenant: TenantId, conversation: ConversationId, agent: AgentId });
export type ActorAddress = z.infer<typeof ActorAddress>;

export function addressKey(address: ActorAddress): string {
  return `${address.tenant}/${address.conversation}/${address.agent}`;
}

export function turnId(address: ActorAddress, number: number): TurnId {
  return `${address.conversation}:${address.agent}:${number}` as TurnId;
}

/** The parts of a turn id; null where the text is not one. Split from the right: a conversation id may hold ':'. */
export function parseTurnId(
  text: string,
): { conversation: ConversationId; agent: AgentId; number: number } | null {
  const match = /^(.+):([^:]+):([1-9]\d*)$/.exec(text);
  if (!match) return null;
  const conversation = ConversationId.safeParse(match[1]);
  const agent = AgentId.safeParse(match[2]);
  if (!conversation.success || !agent.success) return null;
  return { conversation: conversation.data, agent: agent.data, number: Number(match[3]) };
}
