import {
  type ConversationId,
  type DelegationOpenedBody,
  type Event,
  type EventDraft,
  type EventId,
  parseTurnId,
  runtimeId,
  type TurnId,
  turnOfRuntimeId,
  isAbout,
} from '../../events/index.ts';
import { threadOf } from '../tasks/task-id.ts';

/** The names of a conversation, and of the one that its events are copied into. */
export interface Names {
  from: ConversationId;
  to: ConversationId;
}

/**
 * An event as the copy of its conversation has it: what names turns names those of the copy, and the threads of the past
 * are not the copy's, so that nothing which is done in it reaches them. Words stay as they are, and so do the artifacts
 * that they name.
 */
export function renamedEvent(event: Event, names: Names): EventDraft {
  const {
    tenant: _tenant,
    conversation: _conversation,
    seq: _seq,
    at: _at,
    tokens: _tokens,
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

/** Of ids, those that the runtime has made of a turn. */
function renamedId(id: EventId, names: Names): EventId {
  const turn = turnOfRuntimeId(id, names.from);
  return turn === null ? id : runtimeId(renamedTurn(turn, names), id.slice(turn.length + 1));
}

export function renamedTurn(turn: TurnId, { from, to }: Names): TurnId {
  return parseTurnId(turn)?.conversation === from ? (`${to}${turn.slice(from.length)}` as TurnId) : turn;
}
