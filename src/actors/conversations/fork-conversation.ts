import { TroupeError } from '../../base/errors.ts';
import { hashText } from '../../context/index.ts';
import {
  type ActorAddress,
  type Author,
  canonicalJson,
  type CommandOf,
  ConversationId,
  type Event,
  type EventDraft,
  type ForkPlace,
  isImported,
  parseTurnId,
  type Rerun,
  runtimeId,
  turnId,
  type AgentId,
  type DelegationOpenedBody,
  type EventId,
  isAbout,
  NO_USAGE,
  SYSTEM_AUTHOR,
  type ToolCall,
  type TurnId,
  turnOfRuntimeId,
} from '../../events/index.ts';
import { AGENT_MACHINE_VERSION, newAgent, saveAgent } from '../../machines/agent-lifecycle.ts';
import { isRetired } from '../../machines/membership.ts';
import type { ConversationKey } from '../../store/store.ts';
import { changeAvailability, patchAtRest } from '../actor/at-rest.ts';
import type { EngineDeps } from '../actor/engine-deps.ts';
import { readPages } from '../log/read-log.ts';
import { appendFirst, type ConversationDeps } from './messages.ts';
import { activeRuns, failedDrafts } from '../../machines/run-fold.ts';
import { foldParticipants, newParticipants, type Participants } from '../../machines/task-fold.ts';
import { stepOf } from '../../machines/workflow.ts';
import { endId, threadOf } from '../log/tasks.ts';

const MAX_ID = 128;
/** Maximum forks of one event that get a generated id. */
const MOST_NAMED = 1_000;

/**
 * Copies the beginning of a conversation into a new one. Returns the event that records the fork in the source.
 *  F1  The agents of the copy are marked as having processed it before it has any events. So no old message is answered, even
 *      if the fork is interrupted.
 *  F2  Every event keeps its seq, so references to events stay valid.
 *  F3  All ids are derived from the source. Repeating a fork, concurrently or after a crash, makes the same one.
 * Throws `command_refused`, `turn_unknown`, `conversation_unknown`, `event_invalid`.
 */
export async function forkConversation(
  conversations: ConversationDeps,
  tenant: ConversationKey['tenant'],
  command: CommandOf<'fork'>,
  by: Author,
): Promise<Event> {
  const place = await placeOf(conversations.deps, tenant, command);
  return (await makeFork(conversations, { tenant, place, as: command.as, by })).event;
}

/** A fork in which a turn is run again: copied events are changed, and further events follow. */
interface RerunFork {
  rerun: Rerun;
  change(draft: EventDraft, seq: number): EventDraft;
  more: readonly EventDraft[];
}

interface ForkRequest {
  tenant: ConversationKey['tenant'];
  place: ForkPlace;
  as: ConversationId | undefined;
  by: Author;
  again?: RerunFork;
}

export async function makeFork(
  { deps, newId }: ConversationDeps,
  { tenant, place, as, by, again }: ForkRequest,
): Promise<{ event: Event; target: ConversationKey }> {
  const source = { tenant, conversation: place.conversation };
  // Two repetitions without a given id are two forks, even if they are equal.
  const nonce = again && (as === undefined ? newId() : hashText(canonicalJson(again.rerun)));
  const origin = { place, again, mark: nonce === undefined ? '' : `/${nonce}` };
  const target = await claim(deps, source, origin, as);
  if (!(await isForkOf(deps, target, origin))) await copy(deps, { source, target, place, by, again });
  const fork = { conversation: target.conversation, seq: place.seq };
  const event = await appendFirst(deps, source, {
    id: runtimeId('fork', place.seq, target.conversation),
    author: by,
    to: [],
    kind: 'command',
    body: { command: 'fork', fork, ...(again && { rerun: again.rerun }) },
  });
  return { event, target };
}

/** The source of a fork. */
interface Origin {
  place: ForkPlace;
  again: RerunFork | undefined;
  /** Distinguishes claims for the same id. */
  mark: string;
}

async function placeOf(
  { store }: EngineDeps,
  tenant: ConversationKey['tenant'],
  { turn, conversation, seq }: CommandOf<'fork'>,
): Promise<ForkPlace> {
  if (turn !== undefined && conversation === undefined && seq === undefined) {
    const parts = parseTurnId(turn);
    const log = parts && { tenant, conversation: parts.conversation };
    const started = log && (await store.readById(log, runtimeId(turn, 'started')));
    if (!log || started?.kind !== 'turn.started')
      throw new TroupeError('turn_unknown', `there is no turn "${turn}"`, { turn });
    return { conversation: log.conversation, seq: Math.min(...started.body.inputs) - 1 };
  }
  if (turn !== undefined || conversation === undefined || seq === undefined) {
    const message = 'a fork needs a turn, or a conversation and a seq';
    throw new TroupeError('event_invalid', message, { path: turn === undefined ? 'seq' : 'turn' });
  }
  const head = await store.head({ tenant, conversation });
  if (head === 0) {
    const message = `there is no conversation "${conversation}"`;
    throw new TroupeError('conversation_unknown', message, { conversation });
  }
  if (seq > head)
    throw refused(`${conversation} has ${head} events, so there is no event ${seq}`, { conversation, head });
  return { conversation, seq };
}

/** Finds and claims the target: a conversation that does not exist, or an unfinished fork of the same event. */
async function claim(
  deps: EngineDeps,
  { tenant }: ConversationKey,
  origin: Origin,
  as: ConversationId | undefined,
): Promise<ConversationKey> {
  const { place } = origin;
  if (as !== undefined) {
    const log = { tenant, conversation: as };
    if ((await isForkOf(deps, log, origin)) || (await isClaimed(deps, log, origin))) return log;
    throw refused(`there is already a conversation "${as}": choose another name`, { conversation: as });
  }
  for (let number = 1; number <= MOST_NAMED; number += 1) {
    const suffix = `-fork-${place.seq}${number > 1 ? `-${number}` : ''}`;
    const stem = place.conversation.slice(0, MAX_ID - suffix.length);
    const log = { tenant, conversation: ConversationId.parse(`${stem}${suffix}`) };
    if (!(await isForkOf(deps, log, origin)) && (await isClaimed(deps, log, origin))) return log;
  }
  throw refused(`event ${place.seq} has ${MOST_NAMED} forks: name this one`);
}

async function isForkOf(
  { store }: EngineDeps,
  log: ConversationKey,
  { place: { conversation, seq }, again }: Origin,
): Promise<boolean> {
  const event = await store.readById(log, runtimeId('forked', seq));
  if (event?.kind !== 'command' || isImported(event)) return false;
  const { from, rerun } = event.body;
  return from?.conversation === conversation && canonicalJson(rerun) === canonicalJson(again?.rerun);
}

/** Claims the id by a key-value entry. An entry of a deleted conversation does not count. */
async function isClaimed(
  { store }: EngineDeps,
  log: ConversationKey,
  { place: { conversation, seq }, mark }: Origin,
): Promise<boolean> {
  const key = `fork:${log.conversation}`;
  const ours = `${conversation}/${seq}${mark}`;
  const noted = await store.get(log.tenant, key);
  if ((await store.head(log)) > 0) return noted === ours;
  return noted === ours || (await store.compareAndSet(log.tenant, key, noted, ours)) === ours;
}

interface Fork {
  source: ConversationKey;
  target: ConversationKey;
  place: ForkPlace;
  by: Author;
  again: RerunFork | undefined;
}

async function copy(deps: EngineDeps, { source, target, place, by, again }: Fork): Promise<void> {
  const names = { from: source.conversation, to: target.conversation };
  const past = newPast();
  for await (const page of readPages(deps.store, source, { after: 0, upTo: place.seq }))
    for (const event of page) foldPast(past, event);
  const ends = [...(again?.more ?? []), ...forkEnds(past, names, place, { by, rerun: again?.rerun })];
  await settlePast(deps, target, past, place.seq + ends.length);
  for await (const page of readPages(deps.store, source, { after: 0, upTo: place.seq })) {
    await copyArtifacts(deps, source, target, page);
    const drafts = page.map((event) => {
      const draft = renamedEvent(event, names);
      return again ? again.change(draft, event.seq) : draft;
    });
    await appendAt(deps, target, drafts, { first: page[0]?.seq ?? 1, times: page.map(({ at }) => at) });
  }
  const last = ends.pop();
  await appendAt(deps, target, ends, { first: place.seq + 1 });
  // If several people fork concurrently, the first of them becomes its author.
  if (last) await appendFirst(deps, target, last);
}

/** Appends drafts that must get the seqs from `first` on (F2). Throws `command_refused` if another writer was faster. */
async function appendAt(
  { log: events, clock }: EngineDeps,
  target: ConversationKey,
  drafts: readonly EventDraft[],
  { first, times = [] }: { first: number; times?: readonly number[] },
): Promise<void> {
  if (drafts.length === 0) return;
  const now = clock.now();
  const { conversation } = target;
  try {
    const appended = await events.append(target, drafts, {
      at: (index) => times[index] ?? now,
      wake: false,
      spares: false,
    });
    if (appended.every(({ event }, index) => event.seq === first + index)) return;
  } catch (error) {
    if (!(error instanceof TroupeError) || error.code !== 'event_conflict') throw error;
  }
  throw refused(`another writer appended to ${conversation} while it was made: choose another name`, {
    conversation,
  });
}

async function copyArtifacts(
  { store, clock }: EngineDeps,
  source: ConversationKey,
  target: ConversationKey,
  events: readonly Event[],
): Promise<void> {
  for (const { kind, body } of events) {
    if (kind !== 'tool.result' || body.artifact === undefined) continue;
    const whole = await store.readArtifact(source, body.artifact);
    if (whole !== null) await store.putArtifact(target, body.artifact, whole, clock.now());
  }
}

async function settlePast(
  deps: EngineDeps,
  target: ConversationKey,
  past: Past,
  upTo: number,
): Promise<void> {
  for (const [agent, turns] of past.turns) {
    const address = { ...target, agent };
    await settle(deps, address, turns, upTo);
    if (isRetired(past.participants.tasks, agent))
      await changeAvailability(deps, address, { type: 'RETIRE' });
  }
}

function settle(deps: EngineDeps, address: ActorAddress, turns: number, upTo: number): Promise<void> {
  return patchAtRest(deps, address, (held) => {
    if (held && held.processed >= upTo) return null;
    return {
      processed: upTo,
      state: {
        turnNo: turns,
        lastTurn: turns === 0 ? null : turnId(address, turns),
        snapshot: turns === 0 ? null : saveAgent(newAgent()),
        machineVersion: AGENT_MACHINE_VERSION,
      },
    };
  });
}

function refused(message: string, data: Record<string, unknown> = {}): TroupeError {
  return new TroupeError('command_refused', message, data);
}

/** State of a conversation at the fork, folded from its events. */
interface Past {
  participants: Participants;
  /** Agents that were addressed or took turns, with the number of their last turn. */
  turns: Map<AgentId, number>;
  underWay: Map<AgentId, OpenTurn>;
}

interface OpenTurn {
  id: TurnId;
  author: Author;
  covers: number[];
  steps: number;
  waiting: Map<string, ToolCall>;
  isAnswered: boolean;
}

function newPast(): Past {
  return { participants: newParticipants(), turns: new Map(), underWay: new Map() };
}

function foldPast(past: Past, event: Event): void {
  foldParticipants(past.participants, event);
  for (const agent of event.to) if (!past.turns.has(agent)) past.turns.set(agent, 0);
  const parts = event.turn === undefined ? null : parseTurnId(event.turn);
  if (!parts || event.turn === undefined || parts.conversation !== event.conversation) return;
  const { number } = parts;
  const agent = (event.author.kind === 'agent' ? event.author.id : parts.agent) as AgentId;
  past.turns.set(agent, Math.max(past.turns.get(agent) ?? 0, number));
  if (event.kind === 'turn.started') {
    past.underWay.set(agent, {
      id: event.turn,
      author: event.author,
      covers: [...event.body.inputs],
      steps: 0,
      waiting: new Map(),
      isAnswered: false,
    });
    return;
  }
  const turn = past.underWay.get(agent);
  if (turn?.id === event.turn) foldTurn(past, agent, turn, event);
}

function foldTurn(past: Past, agent: AgentId, turn: OpenTurn, event: Event): void {
  if (!isAbout(event, 'turn')) return;
  switch (event.kind) {
    case 'turn.steered':
      return void turn.covers.push(...event.body.inputs);
    case 'step':
      turn.steps += 1;
      for (const call of event.body.calls) turn.waiting.set(call.id, call);
      return;
    case 'tool.result':
      return void turn.waiting.delete(event.body.call);
    case 'message':
      turn.isAnswered = true;
      return;
    case 'turn.done':
    case 'turn.failed':
    case 'turn.aborted':
      return void past.underWay.delete(agent);
    case 'turn.started':
    case 'handoff':
    case 'error':
    case 'command':
      return;
  }
}

/** The events that end open work in the copy. They are the same for every person who forks; the last one marks the fork. */
function forkEnds(
  past: Past,
  names: Names,
  place: ForkPlace,
  { by, rerun }: { by: Author; rerun?: Rerun | undefined },
): EventDraft[] {
  const { tasks } = past.participants;
  const { conversation, seq } = place;
  return [
    ...[...past.underWay.values()].flatMap((turn) => endTurn(turn, names)),
    ...endTasks(past, seq),
    ...activeRuns(tasks.runs).flatMap((run) => {
      const goOn = `troupe run ${names.to} ${run.workflow} --run ${run.run} --step ${stepOf(run.state.context)?.id ?? ''}`;
      return failedDrafts(run, FORKED, goOn);
    }),
    ...(tasks.directions.archived ? [{ ...noteOf(runtimeId('forked', seq, 'reopened')), ...REOPEN }] : []),
    {
      ...noteOf(runtimeId('forked', seq)),
      author: by,
      kind: 'command',
      body: { command: 'fork', from: { conversation, seq }, ...(rerun && { rerun }) },
    },
  ];
}

const FORKED = 'this conversation is a fork, in which it does not go on';
const NO_RESULT =
  'not known: the conversation was forked before it came. The call may have had its effect: do not repeat it, check first.';
const REOPEN = { kind: 'command' as const, body: { command: 'reopen' as const, reason: 'it is a fork' } };

function noteOf(id: EventId) {
  return { id, author: SYSTEM_AUTHOR, to: [] };
}

/** Ends a running turn: calls without a result get one, and a turn with an answer is done. */
function endTurn({ id, author, covers, steps, waiting, isAnswered }: OpenTurn, names: Names): EventDraft[] {
  const turn = renamedTurn(id, names);
  const own = (part: string) => ({ id: runtimeId(turn, part), author, to: [], turn });
  const results = [...waiting.values()].map((call, index): EventDraft => ({
    ...own(`result:${steps}.${index}`),
    kind: 'tool.result',
    body: { call: call.id, name: call.name, outcome: 'lost', content: NO_RESULT },
  }));
  const end: EventDraft = isAnswered
    ? { ...own('end'), kind: 'turn.done', body: { covers, steps, usage: NO_USAGE } }
    : { ...own('end'), kind: 'turn.aborted', body: { covers, by: 'fork', partial: '' } };
  return [...results, end];
}

/** Ends open tasks. The ends have no recipients, because the waiting agents see them in their next turn. */
function endTasks({ participants: { tasks } }: Past, seq: number): EventDraft[] {
  const ended = [...tasks.tasks.values()]
    .filter(({ end }) => end === null)
    .map((task): EventDraft => {
      const own = noteOf(endId(task.id));
      switch (task.kind) {
        case 'question': {
          const body = { question: task.id, outcome: 'cancelled' as const, content: FORKED };
          return { ...own, kind: 'question.answered', body };
        }
        case 'approval': {
          const body = { request: task.id, outcome: 'cancelled' as const, note: FORKED };
          return { ...own, kind: 'approval.decided', body };
        }
        case 'delegation':
          return { ...own, kind: 'delegation.ended', body: abortOf(task.id) };
      }
    });
  const own = (tasks.thread?.open ?? []).map(({ delegation }): EventDraft => {
    const body = abortOf(delegation);
    return { ...noteOf(runtimeId('forked', seq, delegation)), kind: 'delegation.ended', body };
  });
  return [...ended, ...own];
}

function abortOf(delegation: string) {
  return { delegation, outcome: 'cancelled' as const, result: FORKED };
}

interface Names {
  from: ConversationId;
  to: ConversationId;
}

/**
 * Rewrites an event for the copy of its conversation. References to turns name turns of the copy, and threads are renamed, so
 * that work in the copy cannot reach the threads of the source. Texts and the artifacts they name stay the same.
 */
export function renamedEvent(event: Event, names: Names): EventDraft {
  const {
    tenant: _tenant,
    conversation: _conversation,
    seq: _seq,
    at: _at,
    tokens: _tokens,
    altered: _altered,
    ...draft
  } = withBody(event, names);
  const id = (text: EventId) => renamedId(text, names);
  return {
    ...draft,
    id: id(event.id),
    ...(event.turn !== undefined && { turn: renamedTurn(event.turn, names) }),
    ...(event.replyTo !== undefined && { replyTo: id(event.replyTo) }),
  };
}

function withBody(event: Event, names: Names): Event {
  const ids = (all: readonly EventId[]) => all.map((id) => renamedId(id, names));
  const turns = (all: readonly TurnId[]) => all.map((turn) => renamedTurn(turn, names));
  if (!isAbout(event, 'ids')) return event;
  switch (event.kind) {
    case 'command': {
      const { turn } = event.body;
      if (turn === undefined) return event;
      return { ...event, body: { ...event.body, turn: renamedTurn(turn, names) } };
    }
    case 'prune': {
      const { events, memories } = event.body;
      return { ...event, body: { ...event.body, events: ids(events), memories: turns(memories) } };
    }
    case 'baseline': {
      const { adopts } = event.body;
      if (!adopts) return event;
      const { turn, trimmed, pruned, forgotten } = adopts;
      const renamed = {
        ...adopts,
        ...(turn && { turn: { ...turn, id: renamedTurn(turn.id, names) } }),
        ...(trimmed && {
          trimmed: trimmed.map((each) => ({ ...each, event: renamedId(each.event, names) })),
        }),
        ...(pruned && { pruned: ids(pruned) }),
        ...(forgotten && { forgotten: turns(forgotten) }),
      };
      return { ...event, body: { ...event.body, adopts: renamed } };
    }
    case 'delegation.opened':
      return { ...event, body: renamedTask(event.body, names) };
  }
}

function renamedTask(body: DelegationOpenedBody, { from, to }: Names): DelegationOpenedBody {
  const { home, thread } = body;
  const task = thread.slice(thread.lastIndexOf('.') + 1);
  return {
    ...body,
    root: to,
    home: home === from ? to : home,
    thread: thread === from ? to : threadOf(to, task),
  };
}

/** Renames ids that the runtime derived from a turn; others stay. */
function renamedId(id: EventId, names: Names): EventId {
  const turn = turnOfRuntimeId(id, names.from);
  return turn === null ? id : runtimeId(renamedTurn(turn, names), id.slice(turn.length + 1));
}

function renamedTurn(turn: TurnId, { from, to }: Names): TurnId {
  return parseTurnId(turn)?.conversation === from ? (`${to}${turn.slice(from.length)}` as TurnId) : turn;
}
