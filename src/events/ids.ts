import * as z from 'zod';

/**
 * Ids are slugs. They need no escaping in URLs, file names and keys, and user text never reaches a database key or
 * operator. An agent id has no ':', because turn ids are split there.
 */
const SLUG = /^[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}$/;
const AGENT_SLUG = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const EVENT_SLUG = /^[A-Za-z0-9][A-Za-z0-9._@:-]{0,255}$/;

export const TenantId = z.string().regex(SLUG).brand<'TenantId'>();
/** Id of a tenant. */
export type TenantId = z.infer<typeof TenantId>;
/** Id of a conversation: 1 to 128 of `A-Z a-z 0-9 . _ @ : -`. */
export const ConversationId = z
  .string()
  .regex(SLUG, 'a conversation id is 1 to 128 of A-Z a-z 0-9 . _ @ : - and starts with a letter or digit')
  .brand<'ConversationId'>();
export type ConversationId = z.infer<typeof ConversationId>;

/** For hot paths. */
export function isConversationId(id: unknown): id is ConversationId {
  return typeof id === 'string' && SLUG.test(id);
}
/** Id of an agent: 1 to 64 of `A-Z a-z 0-9 _ -`. */
export const AgentId = z
  .string()
  .regex(AGENT_SLUG, 'an agent id is 1 to 64 of A-Z a-z 0-9 _ - and starts with a letter or digit')
  .brand<'AgentId'>();
export type AgentId = z.infer<typeof AgentId>;
/** `coder-1` of the template `coder`. At most three digits bound the number of agents per template. */
const SPAWNED = /^(.+)-[1-9]\d{0,2}$/;

/** The template that an agent was made from. Null: its id is not of that form. */
export function templateOf(id: string): AgentId | null {
  return (SPAWNED.exec(id)?.[1] ?? null) as AgentId | null;
}

/** Id of an event, unique in its conversation. */
export const EventId = z
  .string()
  .regex(EVENT_SLUG, 'an event id is 1 to 256 of A-Z a-z 0-9 . _ @ : -')
  .brand<'EventId'>();
export type EventId = z.infer<typeof EventId>;

/** For hot paths. */
export function isEventId(id: unknown): id is EventId {
  return typeof id === 'string' && EVENT_SLUG.test(id);
}

/** `<conversation>:<agent>:<number>`, unique within a tenant. */
export const TurnId = z.string().max(220).brand<'TurnId'>();
export type TurnId = z.infer<typeof TurnId>;

export const DEFAULT_TENANT = 'default' as TenantId;

/** Position of an event in the log of its conversation: 1, 2, 3, … without gaps. */
export const Seq = z.int().positive();

/** One agent in one conversation of one tenant. Each has an actor record. */
export const ActorAddress = z.object({
  /** Id of the tenant. */
  tenant: TenantId,
  /** Id of the conversation. */
  conversation: ConversationId,
  /** Id of the agent. */
  agent: AgentId,
});
export type ActorAddress = z.infer<typeof ActorAddress>;

/** One text for each address. */
export function addressKey(address: ActorAddress): string {
  return `${address.tenant}/${address.conversation}/${address.agent}`;
}

/** Names a conversation of a tenant in maps. */
export function conversationKey({ tenant, conversation }: Omit<ActorAddress, 'agent'>): string {
  return `${tenant}/${conversation}`;
}

/** Id of the agent's turn of this number; the first is 1. */
export function turnId(address: ActorAddress, number: number): TurnId {
  return `${address.conversation}:${address.agent}:${number}` as TurnId;
}

/** The parts of a turn id, or null if the text is none. Split from the right: a conversation id may have a ':'. */
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

/** Current use of a conversation. A change is an event and resets nothing. */
export const Mode = z.enum(['chat', 'agent', 'run']);
export type Mode = z.infer<typeof Mode>;

/** How much of the earlier conversation an agent sees in its first turn. */
export const JoinPolicy = z.enum(['full', 'summary', 'fresh']);
export type JoinPolicy = z.infer<typeof JoinPolicy>;

/** Id of a workflow run, whichever program drives it. */
export const RunId = z.string().regex(SLUG, 'a run id is 1 to 128 of A-Z a-z 0-9 . _ @ : -');

/** Id of a workflow run that Troupe drives. It has no ':', because it is a part of event ids, which are split there. */
export const WorkflowRunId = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_@-]{0,127}$/,
    'the id of a run of a workflow is 1 to 128 of A-Z a-z 0-9 _ @ -',
  );

/**
 * The id of an event that the runtime writes. It is predictable, so a retry writes the same event. Runtime ids are
 * reserved: the ':' between the parts distinguishes them, and an event from outside whose id has a ':' is refused.
 */
export function runtimeId(...parts: readonly [Part, Part, ...Part[]]): EventId {
  return parts.join(':') as EventId;
}

type Part = string | number;

/** Whether only the runtime gives such an id to an event. */
export function isRuntimeId(id: string): boolean {
  return id.includes(':');
}

/** The id that the runtime uses instead of a runtime id that is taken, by an older client or an imported file. */
export function spareId(id: string, number: number): EventId {
  return runtimeId(id, `@${number}`);
}

/** Id of the message that passes on a held one. */
export function dispatchId({ seq }: { seq: number }): EventId {
  return runtimeId('dispatch', seq);
}

/** The turn that a runtime id of this conversation belongs to; null for any other id. */
export function turnOfRuntimeId(id: string, conversation: ConversationId): TurnId | null {
  if (!id.startsWith(`${conversation}:`)) return null;
  const [agent, number, part] = id.slice(conversation.length + 1).split(':', 3);
  const turn = `${conversation}:${agent}:${number}`;
  return part !== undefined && parseTurnId(turn) ? (turn as TurnId) : null;
}

/** One event of a workflow run. Each has a fixed id, so it is written once. */
export interface RunFact {
  run: string;
  part: RunPart;
  /** Number of the step, from 1. */
  number: number;
  attempt: number;
}

export type RunPart = 'mode' | 'phase' | 'directive' | 'step' | 'failed' | 'end' | 'back';

export function runFactId({ run, part, number, attempt }: RunFact): EventId {
  return runtimeId('run', run, part, `${number}.${attempt}`);
}

/** A run fact by its id or a spare of its id; null for any other id. */
export function runFactOf(id: string): RunFact | null {
  const [, run, part, number, attempt] = RUN_FACT.exec(id) ?? [];
  if (run === undefined) return null;
  return { run, part: part as RunPart, number: Number(number), attempt: Number(attempt) };
}

const RUN_FACT = /^run:([A-Za-z0-9_@-]+):(mode|phase|directive|step|failed|end|back):(\d+)\.(\d+)(?::@\d+)?$/;
