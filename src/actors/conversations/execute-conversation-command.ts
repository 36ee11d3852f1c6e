import { TroupeError } from '../../errors.ts';
import {
  type ActorAddress,
  type AgentId,
  type Author,
  type ConversationCommand,
  type Event,
  EventDraft,
  isImported,
  runtimeId,
  SYSTEM_AUTHOR,
} from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';
import { resolveAgent } from './address-message.ts';
import { changeAvailability } from '../engine/change-availability.ts';
import { tellParked } from '../turn/transition.ts';
import { appendTrusted, appendLast, type ConversationDeps, joinPolicyOf } from './conversation-deps.ts';
import type { Participants } from '../../machines/participants.ts';
import { requirePerson } from './trust.ts';

/** Who takes part, and whether it goes on: decided by people. Throws `command_refused`, `agent_unknown`. */
export async function executeConversationCommand(
  door: ConversationDeps,
  log: ConversationKey,
  command: ConversationCommand,
  by: Author,
): Promise<Event> {
  requirePerson(door.trust, by, WORD[command.command]);
  const participants = await door.participantsCache.of(log);
  const { tasks, retired } = participants;
  switch (command.command) {
    case 'join':
    case 'unblock':
      return letIn(door, log, command, by, participants);
    case 'leave':
    case 'block': {
      const agent = resolveAgent(door.deps.agents, command.agent);
      const blocked = command.command === 'block';
      if (tasks.away.get(agent)?.blocked === blocked)
        throw refused(`@${agent} ${blocked ? 'is blocked' : 'has left'} already`, { agent });
      const body = { agent, reason: command.reason ?? '', ...(blocked && { blocked }) };
      return append(door, log, { author: by, kind: 'left', body });
    }
    case 'retire': {
      const agent = resolveAgent(door.deps.agents, command.agent);
      if (retired.has(agent)) throw refused(`@${agent} is retired already`, { agent });
      const event = await append(door, log, {
        author: by,
        kind: 'command',
        body: { command: 'retire', agent },
      });
      const address = { ...addressOf(log), agent };
      const { state } = await changeAvailability(door.deps, address, { type: 'RETIRE' });
      tellParked(door.deps, address, 'RETIRE', state);
      return event;
    }
    case 'recall': {
      const agent = resolveAgent(door.deps.agents, command.agent);
      if (!retired.has(agent)) throw refused(`@${agent} is not retired`, { agent });
      await door.engine.resume({ ...addressOf(log), agent }, 'REINSTATE');
      return append(door, log, { author: by, kind: 'command', body: { command: 'recall', agent } });
    }
    case 'spawn':
      return spawn(door, log, command.template, participants);
    case 'dispatch':
      return dispatch(door, log, command, by, participants);
    case 'archive':
    case 'reopen': {
      const isOpen = command.command === 'reopen';
      if (tasks.directions.archived !== isOpen)
        throw refused(isOpen ? 'it is open' : 'it is archived already');
      const kind = isOpen ? 'reopened' : 'archived';
      return append(door, log, { author: by, kind, body: { reason: command.reason ?? '' } });
    }
  }
}

const WORD: Record<ConversationCommand['command'], string> = {
  join: 'let agents in',
  leave: 'let agents leave',
  block: 'block agents',
  unblock: 'unblock agents',
  retire: 'retire agents',
  recall: 'recall agents',
  spawn: 'spawn agents',
  dispatch: 'pass on messages',
  archive: 'archive a conversation',
  reopen: 'reopen a conversation',
};

async function letIn(
  door: ConversationDeps,
  log: ConversationKey,
  command: Extract<ConversationCommand, { command: 'join' | 'unblock' }>,
  by: Author,
  { tasks }: Participants,
): Promise<Event> {
  const { deps } = door;
  const agent = resolveAgent(deps.agents, command.agent);
  const isAway = tasks.away.has(agent);
  if (!isAway && command.command === 'unblock') throw refused(`@${agent} is not blocked`, { agent });
  if (!isAway && tasks.joined.has(agent)) throw refused(`@${agent} takes part already`, { agent });
  const asked = command.command === 'join' ? command.policy : undefined;
  const body = { agent, policy: asked ?? joinPolicyOf(deps, tasks, agent) };
  const event = await append(door, log, { author: by, kind: 'joined', body });
  // What it waited for may have come while it was away. A wake that is lost is the sweeper's.
  if (isAway) await deps.router.wake({ ...addressOf(log), agent }).catch(() => undefined);
  return event;
}

/** Agents of one template in one conversation at most. */
const MOST_SPAWNED = 999;

/** The next number is taken by appending it: of two who want it, one finds it taken. */
async function spawn(
  door: ConversationDeps,
  log: ConversationKey,
  template: AgentId,
  { tasks }: Participants,
): Promise<Event> {
  const { agents, log: events } = door.deps;
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

/** Passes it on in the person's name: the message itself is history by then, and stands once in each prompt. */
async function dispatch(
  door: ConversationDeps,
  log: ConversationKey,
  { event: id, note }: Extract<ConversationCommand, { command: 'dispatch' }>,
  by: Author,
  participants: Participants,
): Promise<Event> {
  const { store, agents } = door.deps;
  const held = await store.readById(log, id);
  const to = (held?.context?.held ?? []).filter((agent) => agents.has(agent));
  if (!held || to.length === 0) throw refused(`event ${id} is not held back`, { event: id });
  const content = note ?? `Please answer what ${held.author.name} said.`;
  const draft = {
    id: runtimeId('dispatch', held.seq),
    author: by,
    to,
    replyTo: held.id,
    kind: 'message' as const,
    body: { content },
  };
  // Whoever has passed it on: once is enough.
  const before = await store.readById(log, draft.id);
  if (before && !isImported(before)) return before;
  return (await appendTrusted(door, log, draft, participants)).event;
}

async function append(
  { deps, newId }: ConversationDeps,
  log: ConversationKey,
  event: Pick<EventDraft, 'author' | 'kind' | 'body'>,
): Promise<Event> {
  const parsed = EventDraft.safeParse({ id: newId(), to: [], ...event });
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const path = issue?.path.map(String).join('.') ?? '';
    throw new TroupeError('event_invalid', `${path || 'command'}: ${issue?.message}`, { path });
  }
  return (await appendLast(deps, log, [parsed.data])).event;
}

function addressOf({ tenant, conversation }: ConversationKey): Omit<ActorAddress, 'agent'> {
  return { tenant, conversation };
}

function refused(message: string, data: Record<string, unknown> = {}): TroupeError {
  return new TroupeError('command_refused', message, data);
}
