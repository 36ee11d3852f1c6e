import type { AgentId, Event, TurnId } from '../events/index.ts';
import type { Row } from './model.ts';
import { oneLine } from './one-line.ts';
import { rawText, summariseEvent } from './summarise-event.ts';

/** One event as a line of a list. Never throws: what this version cannot read is shown raw. */
export function rowOf(event: Event): Row {
  try {
    return {
      ...envelopeOf(event),
      level: levelOf(event),
      agent: agentOf(event),
      summary: summariseEvent(event),
    };
  } catch {
    return { ...envelopeOf(event), level: 'work', agent: null, summary: oneLine(rawText(event)) };
  }
}

function envelopeOf(event: Event): Pick<Row, 'seq' | 'at' | 'kind' | 'author' | 'isAgent' | 'to' | 'turn'> {
  const { seq, at, kind, author, to, turn } = event as Partial<Event>;
  return {
    seq: Number(seq ?? 0),
    at: Number(at ?? 0),
    kind: String(kind),
    author: String(author?.name ?? ''),
    isAgent: author?.kind === 'agent',
    to: Array.isArray(to) ? to : [],
    turn: typeof turn === 'string' ? turn : null,
  };
}

function levelOf(event: Event): Row['level'] {
  switch (event.kind) {
    case 'error':
    case 'turn.failed':
    case 'guard.stopped':
    case 'session.lost':
    case 'compaction.failed':
      return 'problem';
    case 'tool.result':
      return event.body.outcome === 'failed' || event.body.outcome === 'lost' ? 'problem' : 'work';
    case 'delegation.completed':
    case 'delegation.aborted':
      return event.body.outcome === 'failed' ? 'problem' : 'talk';
    case 'run.directive':
      return event.body.status === 'failed' ? 'problem' : 'talk';
    case 'message':
    case 'handoff':
    case 'delegation.opened':
    case 'question':
    case 'question.answered':
    case 'approval.requested':
    case 'approval.decided':
    case 'phase.changed':
    case 'mode.changed':
    case 'archived':
    case 'reopened':
    case 'command':
      return 'talk';
    case 'baseline':
    case 'joined':
    case 'prune':
    case 'session.started':
    case 'session.resumed':
    case 'session.rewound':
    case 'session.compacted':
    case 'session.rebuilt':
    case 'turn.started':
      return 'noise';
    default:
      return 'work';
  }
}

const ABOUT = /^(?:failed|joined|baseline):([^:]+)/;

/** Its author, or the one that it is about. */
function agentOf(event: Event): AgentId | null {
  const { author, turn } = event;
  if (author.kind === 'agent') return author.id as AgentId;
  switch (event.kind) {
    case 'joined':
    case 'left':
      return event.body.agent;
    case 'command':
      return event.body.agent ?? turnAgent(event.body.turn) ?? event.to[0] ?? null;
    default:
      return turnAgent(turn) ?? (ABOUT.exec(event.id)?.[1] as AgentId | undefined) ?? null;
  }
}

function turnAgent(turn: TurnId | undefined): AgentId | null {
  return turn === undefined
    ? null
    : ((/(?<![^:])([^:]+):\d+$/.exec(turn)?.[1] as AgentId | undefined) ?? null);
}
