import type { AgentId, Event, TurnId } from '../../events/index.ts';
import { KINDS, type Level } from '../../events/kinds.ts';
import type { Row } from './model.ts';
import { CHANGED_MARK } from '../../events/erased-words.ts';
import { oneLine } from './words.ts';
import { rawText, summariseEvent } from './summarise-event.ts';

/** One event as a row of a list. Never throws: an unreadable event is shown raw. */
export function rowOf(event: Event): Row {
  try {
    return {
      ...envelopeOf(event),
      level: event.altered ? 'problem' : levelOf(event),
      agent: agentOf(event),
      summary: summaryOf(event),
    };
  } catch {
    return { ...envelopeOf(event), ...UNREADABLE, summary: oneLine(rawText(event)) };
  }
}

/** The agent that an event is about, and its level, without the text of a row. */
export function placeOf(event: Event): Pick<Row, 'agent' | 'level'> {
  try {
    return { agent: agentOf(event), level: event.altered ? 'problem' : levelOf(event) };
  } catch {
    return UNREADABLE;
  }
}

const UNREADABLE = { agent: null, level: 'work' } as const;

function envelopeOf(event: Event): Omit<Row, 'level' | 'agent' | 'summary'> {
  const { seq, at, kind, author, to, turn, erased } = event as Partial<Event>;
  return {
    seq: Number(seq ?? 0),
    at: Number(at ?? 0),
    kind: String(kind),
    author: String(author?.name ?? ''),
    isAgent: author?.kind === 'agent',
    to: Array.isArray(to) ? to : [],
    turn: typeof turn === 'string' ? turn : null,
    ...(erased !== undefined && { erased: true }),
  };
}

/** The texts of a changed event carry a mark. The mark is added here if the event has no texts. */
function summaryOf(event: Event): string {
  const summary = summariseEvent(event);
  return event.altered && !summary.includes(CHANGED_MARK) ? `${CHANGED_MARK} ${summary}` : summary;
}

function levelOf(event: Event): Level {
  // Own properties only: an unknown kind may have the name of a member of every object.
  if (!Object.hasOwn(KINDS, event.kind)) return 'work';
  const { level } = KINDS[event.kind];
  return typeof level === 'function' ? (level as (body: Event['body']) => Level)(event.body) : level;
}

const ABOUT = /^(?:failed|joined|baseline):([^:]+)/;

/** The agent that wrote the event or that it is about. */
function agentOf(event: Event): string | null {
  const { author, turn } = event;
  if (author.kind === 'agent') return author.id;
  if (event.kind === 'membership.changed') return event.body.agent;
  if (event.kind === 'command') return event.body.agent ?? turnAgent(event.body.turn) ?? event.to[0] ?? null;
  return turnAgent(turn) ?? (ABOUT.exec(event.id)?.[1] as AgentId | undefined) ?? null;
}

function turnAgent(turn: TurnId | undefined): AgentId | null {
  return turn === undefined
    ? null
    : ((/(?<![^:])([^:]+):\d+$/.exec(turn)?.[1] as AgentId | undefined) ?? null);
}
