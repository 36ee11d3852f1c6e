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

/** What a conversation is used for at present. A change of it is an event and resets nothing. */
export const Mode = z.enum(['chat', 'agent', 'run']);
export type Mode = z.infer<typeof Mode>;

/** A run of a workflow, named by whoever drives it. */
export const RunId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}$/, 'a run id is 1 to 128 of A-Z a-z 0-9 . _ @ : -');

/** One that Troupe drives: its id is part of the ids of events, which are told apart at ':'. */
export const WorkflowRunId = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_@-]{0,127}$/,
    'the id of a run of a workflow is 1 to 128 of A-Z a-z 0-9 _ @ -',
  );

/**
 * Ids that the runtime mints for what it writes. They are predictable, so that a retry writes the same event; so nobody
 * else may take one, or an agent could not publish under it.
 *
 * One mark tells them from all other ids: the ':' between their parts. `runtimeId` is the only way to make one, so none can
 * be without it; and nobody brings an event under an id that has one, through whichever door (`Troupe.send`).
 */
const MARK = ':';

type Part = string | number;

export function runtimeId(...parts: readonly [Part, Part, ...Part[]]): EventId {
  return parts.join(MARK) as EventId;
}

export function isRuntimeId(id: string): boolean {
  return id.includes(MARK);
}

/**
 * Where an event under a runtime id is not the runtime's (a client of an earlier version took it, a file brought it), the
 * runtime writes under the next spare of it. No id of another event ends like this.
 */
export function spareId(id: EventId, number: number): EventId {
  return runtimeId(id, `@${number}`);
}

function withoutSpare(id: string): string {
  return id.replace(/:@\d+$/, '');
}

/** What a run of a workflow brings about, of one attempt at it: each has one id, so it is there once. */
const RUN_FACT = /^run:([A-Za-z0-9_@-]+):(mode|phase|directive|step|failed|end|back):(\d+)\.(\d+)$/;

export type RunPart = 'mode' | 'phase' | 'directive' | 'step' | 'failed' | 'end' | 'back';

/** Which part of a run, at which of its steps (from 1), at which attempt. */
export interface RunFact {
  run: string;
  part: RunPart;
  number: number;
  attempt: number;
}

export function runFactId({ run, part, number, attempt }: RunFact): EventId {
  return runtimeId('run', run, part, `${number}.${attempt}`);
}

export function runFactOf(id: string): RunFact | null {
  const [, run, part, number, attempt] = RUN_FACT.exec(withoutSpare(id)) ?? [];
  if (run === undefined) return null;
  return { run, part: part as RunPart, number: Number(number), attempt: Number(attempt) };
}

/** The turn of a conversation that a runtime id is of; null for any other id. */
export function turnOfRuntimeId(id: string, conversation: ConversationId): TurnId | null {
  if (!id.startsWith(`${conversation}${MARK}`)) return null;
  const [agent, number, part] = id.slice(conversation.length + 1).split(MARK, 3);
  const turn = `${conversation}${MARK}${agent}${MARK}${number}`;
  return part !== undefined && parseTurnId(turn) ? (turn as TurnId) : null;
}
