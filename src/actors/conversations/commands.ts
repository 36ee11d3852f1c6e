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
  type ActorRecord,
  type EventId,
  parseTurnId,
  turnId,
  type TurnId,
  isAbout,
} from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';
import { addressOfTurn } from '../actor/agent-runtime.ts';
import {
  resolveAgent,
  appendTrusted,
  appendLast,
  type ConversationDeps,
  joinPolicyOf,
  appendFirst,
} from './messages.ts';
import { changeAvailability, publishAvailability } from '../actor/at-rest.ts';
import { isRetired } from '../../machines/membership.ts';
import { isHere, type Participants } from '../../machines/task-fold.ts';
import { requirePerson, type EngineDeps } from '../actor/engine-deps.ts';

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

/** A command of a person, and the participants at that moment. */
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
  return append(conversations, log, { author: by, kind: 'command', body: { command, reason } });
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
  const body = { change: 'left' as const, agent, reason: command.reason ?? '', ...(blocked && { blocked }) };
  return append(conversations, log, { author: by, kind: 'membership.changed', body });
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

/** Only requests the compaction. The agent's next turn makes it, because its prompt is built and paid for only then. */
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
  const body = { change: 'joined' as const, agent, policy: asked ?? joinPolicyOf(deps, tasks, agent) };
  const event = await append(conversations, log, { author: by, kind: 'membership.changed', body });
  // Results may have arrived while the agent was away. The sweeper makes up for a lost wake.
  if (isAway) await deps.router.wake({ ...addressOf(log), agent }).catch(() => undefined);
  return event;
}

const MOST_SPAWNED = 999;

/** The next number is taken by appending, so of two concurrent commands one finds it taken and tries the next. */
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
    const body = {
      change: 'joined' as const,
      agent,
      policy: agents.get(agent)?.profile.join ?? ('full' as const),
    };
    const id = runtimeId('joined', agent);
    const [appended] = await events.append(log, [
      { id, author: SYSTEM_AUTHOR, to: [], kind: 'membership.changed', body },
    ]);
    if (appended?.kind === 'appended') return appended.event;
  }
  throw refused(`there are ${MOST_SPAWNED} agents of "${template}" here: address one of them`, { template });
}

/** Passes a held message on in the name of a person. The new message does not quote it, because prompts contain the held one. */
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
  // A held message is passed on once, even if several people request it.
  const before = await store.readById(log, draft.id);
  if (before && !isImported(before)) return before;
  return (await appendTrusted(conversations, log, [draft], participants)).event;
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

interface RetryFacts {
  address: ActorAddress;
  turn: TurnId;
  /** How the turn ended in the log; null if it has not. */
  ended: 'done' | 'failed' | 'aborted' | null;
  /** The actor's record; null if it cannot be read. */
  record: Pick<ActorRecord, 'turn' | 'turnNo' | 'parked'> | null;
  participants: Pick<Participants, 'tasks'>;
}

/** `resume`: the agent failed before this turn ended, or after a turn that needs no retry. */
type MayRetry = { kind: 'retry' } | { kind: 'resume' } | { kind: 'refused'; why: string };

export function mayRetry({ address, turn, ended, record, participants }: RetryFacts): MayRetry {
  const refusal = refuseAbsent(address, record, participants);
  if (refusal !== null) return mayNot(refusal);
  const needsRetry = ended === 'failed' || ended === 'aborted';
  if (!record) return { kind: needsRetry ? 'retry' : 'resume' };
  const newest = record.turn?.id ?? turnId(address, record.turnNo);
  if (newest !== turn && isOlder(turn, record)) return mayNot(`a later turn exists: ${newest}`);
  if (record.parked === 'failed') return { kind: needsRetry ? 'retry' : 'resume' };
  if (record.turn) return mayNot('it is running');
  if (ended === 'done') return mayNot('it is done');
  if (ended === null) return mayNot('it is just ending: try again');
  if (record.parked === 'paused') return mayNot(`@${address.agent} is paused: resume it first`);
  return { kind: 'retry' };
}

function isOlder(turn: TurnId, record: Pick<ActorRecord, 'turn' | 'turnNo'>): boolean {
  return record.turn !== null || (parseTurnId(turn)?.number ?? 0) < record.turnNo;
}

/** Why an agent takes no turns in a conversation; null if it does. */
function refuseAbsent(
  { agent, conversation }: ActorAddress,
  record: RetryFacts['record'],
  { tasks }: RetryFacts['participants'],
): string | null {
  const away = tasks.away.get(agent);
  if (tasks.directions.archived) return `${conversation} is archived: reopen it first`;
  if (away) return away.blocked ? `@${agent} is blocked: unblock it first` : `@${agent} has left`;
  const isGone = isRetired(tasks, agent) || record?.parked === 'retired';
  return isGone ? `@${agent} is retired: reinstate it first` : null;
}

function mayNot(why: string): MayRetry {
  return { kind: 'refused', why };
}

/**
 * Retries a turn for a person. Repeated and concurrent requests, in any process, get the same event and the same new turn.
 * Throws `turn_unknown`, `command_refused`.
 *  R1  A retry comes after the end of a turn that failed or was aborted, and addresses only the agent of that turn.
 */
export async function retryTurn(
  conversations: ConversationDeps,
  tenant: ConversationKey['tenant'],
  turn: TurnId,
  by: Author,
): Promise<Event> {
  const { store, log } = conversations.deps;
  const parts = parseTurnId(turn);
  if (!parts) throw unknown(turn);
  const address = addressOfTurn(conversations.deps.agents, tenant, parts);
  const end = await store.readById(address, runtimeId(turn, 'end'));
  const record = await readRecord(store, address);
  const isRunning = record?.turn?.id === turn;
  if (!end && !isRunning && !(await hasStarted(store, address, turn))) throw unknown(turn);
  requireAgent(conversations, address.agent);
  const participants = await conversations.participantsCache.of(address);
  const ended = endOf(end);
  const may = mayRetry({ address, turn, ended, record, participants });
  const notice = participants.failedAt.get(address.agent) ?? 0;
  const ids = [runtimeId(turn, 'retry'), runtimeId(turn, 'resume', notice)] as const;
  const hasFailed = !record || record.parked === 'failed';
  if (may.kind === 'refused' || !hasFailed) {
    const known = await findRequest(conversations, address, ids);
    if (known) return known;
  }
  if (may.kind === 'refused') throw retryRefused(turn, address, may.why);
  const { agent } = address;
  const request =
    may.kind === 'retry'
      ? {
          id: ids[0],
          to: [agent],
          body: { command: 'retry' as const, agent, turn, ...(await givenTo(store, address, end)) },
        }
      : { id: ids[1], to: [], body: { command: 'resume' as const, agent, turn } };
  const event = await appendFirst({ log, store }, address, { ...request, author: by, kind: 'command' });
  if (hasFailed) await conversations.engine.resume(address, 'RETRY');
  return event;
}

/** Finds an earlier request for the same turn. Its writer may have died before waking the agent, so the agent is woken again. */
async function findRequest(
  { deps: { store, router } }: ConversationDeps,
  address: ActorAddress,
  ids: readonly EventId[],
): Promise<Event | null> {
  for (const id of ids) {
    const known = await store.readById(address, id);
    if (!known || isImported(known)) continue;
    // The sweeper makes up for a lost wake.
    await router.wake(address).catch(() => undefined);
    return known;
  }
  return null;
}

function requireAgent({ deps }: ConversationDeps, agent: AgentId): void {
  if (deps.agents.has(agent)) return;
  throw new TroupeError('agent_unknown', `there is no agent "${agent}"`, { agent });
}

function retryRefused(turn: TurnId, { agent, conversation }: ActorAddress, why: string): TroupeError {
  const message = `turn ${turn} cannot be retried: ${why}`;
  return new TroupeError('command_refused', message, { turn, agent, conversation });
}

async function hasStarted(store: EngineDeps['store'], address: ActorAddress, turn: TurnId): Promise<boolean> {
  return (await store.readById(address, runtimeId(turn, 'started'))) !== null;
}

async function readRecord(
  store: EngineDeps['store'],
  address: ActorAddress,
): Promise<Pick<ActorRecord, 'turn' | 'turnNo' | 'parked'> | null> {
  try {
    return (await store.readActor(address)) ?? { turn: null, turnNo: 0, parked: null };
  } catch (error) {
    if (error instanceof TroupeError && error.code === 'actor_corrupt') return null;
    throw error;
  }
}

export function endOf(end: Event | null): RetryFacts['ended'] {
  if (!end || !isAbout(end, 'turnEnd')) return null;
  switch (end.kind) {
    case 'turn.done':
      return 'done';
    case 'turn.failed':
      return 'failed';
    case 'turn.aborted':
      return 'aborted';
  }
}

/** Error code and inputs of the ended turn. A retry of a retry gets the inputs of the first turn. */
async function givenTo(
  store: EngineDeps['store'],
  log: ConversationKey,
  end: Event | null,
): Promise<{ code?: string; inputs: number[] }> {
  if (end?.kind !== 'turn.failed' && end?.kind !== 'turn.aborted') return { inputs: [] };
  const inputs = new Set<number>();
  for (const seq of end.body.covers) {
    const [event] = await store.read(log, { after: seq - 1, upTo: seq, limit: 1 });
    const before = event?.kind === 'command' ? (event.body.inputs ?? []) : [seq];
    for (const each of before) inputs.add(each);
  }
  const code = end.kind === 'turn.failed' ? { code: end.body.code } : {};
  return { ...code, inputs: [...inputs].toSorted((a, b) => a - b) };
}

function unknown(turn: string): TroupeError {
  return new TroupeError('turn_unknown', `there is no turn "${turn}"`, { turn });
}
