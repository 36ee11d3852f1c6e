import {
  type AgentId,
  type Author,
  type ConversationId,
  type DelegationOpenedBody,
  type Event,
  type EventDraft,
  type EventId,
  type ForkPlace,
  isAbout,
  NO_USAGE,
  parseTurnId,
  type Rerun,
  runtimeId,
  SYSTEM_AUTHOR,
  type ToolCall,
  type TurnId,
  turnOfRuntimeId,
} from '../../events/index.ts';
import { activeRuns } from '../../machines/run-book.ts';
import { foldParticipants, newParticipants, type Participants } from '../../machines/participants.ts';
import { stepOf } from '../../machines/workflow.ts';
import { failedDrafts } from './run-drafts.ts';
import { endId, threadOf } from '../tasks/task-events.ts';

/** State of a conversation at the fork, folded from its events. */
export interface Past {
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

export function newPast(): Past {
  return { participants: newParticipants(), turns: new Map(), underWay: new Map() };
}

export function foldPast(past: Past, event: Event): void {
  foldParticipants(past.participants, event);
  for (const agent of event.to) if (!past.turns.has(agent)) past.turns.set(agent, 0);
  const parts = event.turn === undefined ? null : parseTurnId(event.turn);
  if (!parts || event.turn === undefined || parts.conversation !== event.conversation) return;
  const { agent, number } = parts;
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

/** The events that end open work in the copy. The same for every person who forks; the last one marks the fork. */
export function forkEnds(
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
    ...(tasks.directions.archived ? [{ ...noteOf(runtimeId('forked', seq, 'reopened')), ...REOPENED }] : []),
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
const REOPENED = { kind: 'reopened' as const, body: { reason: 'it is a fork' } };

function noteOf(id: EventId) {
  return { id, author: SYSTEM_AUTHOR, to: [] };
}

/** Ends a turn under way: calls without a result get one, and an answered turn is done. */
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

/** The ends have no recipients: the waiting agents see the open tasks in their next turn. */
function endTasks({ participants: { tasks } }: Past, seq: number): EventDraft[] {
  const ended = [...tasks.tasks.values()]
    .filter(({ end }) => end === null)
    .map((task): EventDraft => {
      const own = noteOf(endId(task.id));
      switch (task.kind) {
        case 'question': {
          const body = { question: task.id, outcome: 'withdrawn' as const, content: FORKED };
          return { ...own, kind: 'question.answered', body };
        }
        case 'approval': {
          const body = { request: task.id, outcome: 'withdrawn' as const, note: FORKED };
          return { ...own, kind: 'approval.decided', body };
        }
        case 'delegation':
          return { ...own, kind: 'delegation.aborted', body: abortOf(task.id) };
      }
    });
  const own = (tasks.thread?.open ?? []).map(({ delegation }): EventDraft => {
    const body = abortOf(delegation);
    return { ...noteOf(runtimeId('forked', seq, delegation)), kind: 'delegation.aborted', body };
  });
  return [...ended, ...own];
}

function abortOf(delegation: string) {
  return { delegation, outcome: 'aborted' as const, result: FORKED };
}

/** Id of a conversation and of its copy. */
interface Names {
  from: ConversationId;
  to: ConversationId;
}

/**
 * Rewrites an event for the copy of its conversation. References to turns name turns of the copy, and threads are renamed,
 * so that nothing done in the copy reaches the threads of the source. Texts, and the artifacts they name, stay the same.
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
