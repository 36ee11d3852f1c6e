import type { Event } from './troupe.ts';
import type { ConversationRun } from './conversation-run.ts';
import { eventData, eventWords, isSpoken } from './event-words.ts';
import { type Moment, momentOf } from './moment.ts';
import { isWhat, isWho, patternWords, type What, type Who, whoWords } from './pattern.ts';

/** Somebody said it: in a message, beside tool calls, as a question, an answer, a task or its result. */
export function said(who: Who, what: What): Moment {
  return momentOf(
    `${whoWords(who)} says ${patternWords(what)}`,
    (event) => isSpoken(event) && isWho(who, event.author) && isSaid(what, event),
    (event) => isSpoken(event) && isWho(who, event.author),
    ({ kind }) => kind === 'message',
  );
}

/**
 * An agent answered somebody: a reply of a turn that this person or agent has led to, also through a handoff, a task or an
 * answer of somebody else.
 */
export function answered(agent: Who, whom: Who, what?: What): Moment {
  const words = what === undefined ? '' : `: ${patternWords(what)}`;
  return momentOf(
    `${whoWords(agent)} answers ${whoWords(whom)}${words}`,
    (event, run) =>
      isReply(event, agent) && isFor(event, whom, run) && (what === undefined || isSaid(what, event)),
    (event) => isReply(event, agent),
    ({ kind, author }) => kind === 'message' && author.kind === 'agent',
  );
}

/** One agent handed the conversation over to another. */
export function handedOver(from: Who, to: Who, summary?: What): Moment {
  const words = summary === undefined ? '' : ` with ${patternWords(summary)}`;
  return momentOf(
    `${whoWords(from)} hands over to ${whoWords(to)}${words}`,
    (event) =>
      event.kind === 'handoff' &&
      isWho(from, event.author) &&
      event.to.some((id) => isWho(to, { id, name: id })) &&
      (summary === undefined || isSaid(summary, event)),
    ({ kind }) => kind === 'handoff',
    ({ kind, author }) => kind === 'message' && isWho(from, author),
  );
}

function isSaid(what: What, event: Event): boolean {
  return isWhat(what, eventWords(event), eventData(event));
}

function isReply(event: Event, agent: Who): boolean {
  return event.kind === 'message' && event.turn !== undefined && isWho(agent, event.author);
}

function isFor({ turn }: Event, whom: Who, { turns }: ConversationRun): boolean {
  return turns.some(({ id, askedBy }) => id === turn && askedBy.some((author) => isWho(whom, author)));
}
