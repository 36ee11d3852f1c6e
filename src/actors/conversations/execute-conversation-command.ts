import { TroupeError } from '../../base/errors.ts';
import {
  type ActorAddress,
  type AgentId,
  type Author,
  type ConversationCommand,
  dispatchId,
  type Event,
  EventDraft,
  isImported,
  parseGiven,
  runtimeId,
  SYSTEM_AUTHOR,
} from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';
import { resolveAgent } from './address-message.ts';
import { changeAvailability } from '../engine/change-availability.ts';
import { publishAvailability } from '../turn/transition.ts';
import { appendTrusted, appendLast, type ConversationDeps, joinPolicyOf } from './conversation-deps.ts';
import { isRetired } from '../../machines/membership.ts';
import { isHere, type Participants } from '../../machines/participants.ts';
import { requirePerson } from './trust.ts';

/** Executes commands about participants and about closing a conversation, which only people give. Throws `command_refused`, `agent_unknown`. */
export async function executeConversationCommand(
  conversations: ConversationDeps,
  log: ConversationKey,
  command: ConversationCommand,
  by: Author,
): Promise<Event> {
  requirePerson(conversations.trust, by, ACTIONS[command.command]);
  const participants = await conversations.participantsCache.of(log);
  switch (command.command) {
    case 'join':
    case 'unblock':
      return letIn(conversations, { log, by, participants }, command);
    case 'leave':
    case 'block':
      return letGo(conversations, { log, by, participants }, command);
    case 'retire':
      return retire(conversations, { log, by, participants }, command.agent);
    case 'reinstate':
    case 'recall':
      return reinstate(conversations, { log, by, participants }, command.agent);
    case 'compact':
      return compact(conversations, { log, by, participants }, command.agent);
    case 'spawn':
      return spawn(conversations, log, command.template, participants);
    case 'dispatch':
      return dispatch(conversations, { log, by, participants }, command);
    case 'archive':
    case 'reopen':
      return archiveOrReopen(conversations, { log, by, participants }, command);
  }
}

const ACTIONS: Record<ConversationCommand['command'], string> = {
  join: 'let agents in',
  leave: 'let agents leave',
  block: 'block agents',
  unblock: 'unblock agents',
  retire: 'retire agents',
  reinstate: 'reinstate agents',
  recall: 'reinstate agents',
  compact: 'compact prompts',
  spawn: 'spawn agents',
  dispatch: 'pass on messages',
  archive: 'archive a conversation',
  reopen: 'reopen a conversation',
};

/** A command of a person, and the participants it finds. */
interface PersonCommand {
  log: ConversationKey;
  by: Author;
  participants: Participants;
}

async function archiveOrReopen(
  conversations: ConversationDeps,
  { log, by, participants }: PersonCommand,
  { command, reason = '' }: Extract<ConversationCommand, { command: 'archive' | 'reopen' }>,
): Promise<Event> {
  const isReopen = command === 'reopen';
  if (participants.tasks.directions.archived !== isReopen)
    throw refused(isReopen ? 'it is open' : 'it is already archived');
  const kind = isReopen ? 'reopened' : 'archived';
  return append(conversations, log, { author: by, kind, body: { reason } });
}

async function letGo(
  conversations: ConversationDeps,
  { log, by, participants }: PersonCommand,
  command: Extract<ConversationCommand, { command: 'leave' | 'block' }>,
): Promise<Event> {
  const agent = resolveAgent(conversations.deps.agents, command.agent);
  const blocked = command.command === 'block';
  if (participants.tasks.away.get(agent)?.blocked === blocked)
    throw refused(`@${agent} ${blocked ? 'is already blocked' : 'has already left'}`, { agent });
  const body = { agent, reason: command.reason ?? '', ...(blocked && { blocked }) };
  return append(conversations, log, { author: by, kind: 'left', body });
}

async function retire(
  conversations: ConversationDeps,
  { log, by, participants }: PersonCommand,
  name: string,
): Promise<Event> {
  const { deps } = conversations;
  const agent = resolveAgent(deps.agents, name);
  if (isRetired(participants.tasks, agent)) throw refused(`@${agent} is already retired`, { agent });
  const event = await append(conversations, log, {
    author: by,
    kind: 'command',
    body: { command: 'retire', agent },
  });
  const address = { ...addressOf(log), agent };
  const { state } = await changeAvailability(deps, address, { type: 'RETIRE' });
  publishAvailability(deps, address, 'RETIRE', state);
  return event;
}

async function reinstate(
  conversations: ConversationDeps,
  { log, by, participants }: PersonCommand,
  name: string,
): Promise<Event> {
  const agent = resolveAgent(conversations.deps.agents, name);
  if (!isRetired(participants.tasks, agent)) throw refused(`@${agent} is not retired`, { agent });
  await conversations.engine.resume({ ...addressOf(log), agent }, 'REINSTATE');
  return append(conversations, log, { author: by, kind: 'command', body: { command: 'recall', agent } });
}

/** Nothing is done before the agent's next turn: its prompt is built and paid for only then. */
async function compact(
  conversations: ConversationDeps,
  { log, by, participants }: PersonCommand,
  name: string,
): Promise<Event> {
  const agent = resolveAgent(conversations.deps.agents, name);
  if (!isHere(participants, agent)) throw refused(`@${agent} takes no turns here`, { agent });
  return append(conversations, log, { author: by, kind: 'command', body: { command: 'compact', agent } });
}

async function letIn(
  conversations: ConversationDeps,
  { log, by, participants: { tasks } }: PersonCommand,
  command: Extract<ConversationCommand, { command: 'join' | 'unblock' }>,
): Promise<Event> {
  const { deps } = conversations;
  const agent = resolveAgent(deps.agents, command.agent);
  const isAway = tasks.away.has(agent);
  if (!isAway && command.command === 'unblock') throw refused(`@${agent} is not blocked`, { agent });
  if (!isAway && tasks.joined.has(agent)) throw refused(`@${agent} already takes part`, { agent });
  const asked = command.command === 'join' ? command.policy : undefined;
  const body = { agent, policy: asked ?? joinPolicyOf(deps, tasks, agent) };
  const event = await append(conversations, log, { author: by, kind: 'joined', body });
  // Results may have come while it was away. The sweeper makes up for a lost wake.
  if (isAway) await deps.router.wake({ ...addressOf(log), agent }).catch(() => undefined);
  return event;
}

/** Most agents of one template in one conversation. */
const MOST_SPAWNED = 999;

/** Appending takes the next number: of two concurrent commands, one finds it taken. */
async function spawn(
  conversations: ConversationDeps,
  log: ConversationKey,
  template: AgentId,
  { tasks }: Participants,
): Promise<Event> {
  const { agents, log: events } = conversations.deps;
  const { templates = [] } = agents;
  if (!templates.includes(template)) {
    const known = templates.join(', ') || 'none';
    throw new TroupeError('agent_unknown', `there is no template "${template}". Known: ${known}.`, {
      template,
    });
  }
  let number = 1;
  while (tasks.joined.has(`${template}-${number}` as AgentId)) number += 1;
  for (; number <= MOST_SPAWNED; number += 1) {
    const agent = `${template}-${number}` as AgentId;
    const body = { agent, policy: agents.get(agent)?.profile.join ?? ('full' as const) };
    const id = runtimeId('joined', agent);
    const [appended] = await events.append(log, [
      { id, author: SYSTEM_AUTHOR, to: [], kind: 'joined', body },
    ]);
    if (appended?.kind === 'appended') return appended.event;
  }
  throw refused(`there are ${MOST_SPAWNED} agents of "${template}" here: address one of them`, { template });
}

/** Passes a held message on in the name of a person. The new message quotes nothing: prompts contain the held one. */
async function dispatch(
  conversations: ConversationDeps,
  { log, by, participants }: PersonCommand,
  { event: id, note }: Extract<ConversationCommand, { command: 'dispatch' }>,
): Promise<Event> {
  const { store, agents } = conversations.deps;
  const held = await store.readById(log, id);
  const to = (held?.context?.held ?? []).filter((agent) => agents.has(agent));
  if (!held || to.length === 0) throw refused(`event ${id} is not held back`, { event: id });
  const content = note ?? `Please answer what ${held.author.name} said.`;
  const draft = {
    id: dispatchId(held),
    author: by,
    to,
    replyTo: held.id,
    kind: 'message' as const,
    body: { content },
  };
  // A held message is passed on once, even if several people ask for it.
  const before = await store.readById(log, draft.id);
  if (before && !isImported(before)) return before;
  return (await appendTrusted(conversations, log, draft, participants)).event;
}

async function append(
  { deps, newId }: ConversationDeps,
  log: ConversationKey,
  event: Pick<EventDraft, 'author' | 'kind' | 'body'>,
): Promise<Event> {
  const draft = parseGiven(EventDraft, { id: newId(), to: [], ...event }, 'command', 'event_invalid');
  return (await appendLast(deps, log, [draft])).event;
}

function addressOf({ tenant, conversation }: ConversationKey): Omit<ActorAddress, 'agent'> {
  return { tenant, conversation };
}

function refused(message: string, data: Record<string, unknown> = {}): TroupeError {
  return new TroupeError('command_refused', message, data);
}
