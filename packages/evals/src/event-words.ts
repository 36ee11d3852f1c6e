import { type ByKind, type Event, forKind, summariseEvent } from './troupe.ts';

type SpokenKind =
  | 'message'
  | 'notice'
  | 'step'
  | 'question'
  | 'question.answered'
  | 'approval.decided'
  | 'handoff'
  | 'delegation.opened'
  | 'delegation.ended';

/** What agents and people say to each other, or beside their calls. */
const SPOKEN: ByKind<SpokenKind, string> = {
  message: ({ body }) => body.content,
  notice: ({ body }) => body.content,
  step: ({ body }) => body.content,
  question: ({ body }) => body.text,
  'question.answered': ({ body }) => body.content,
  'approval.decided': ({ body }) => body.note,
  handoff: ({ body }) => Object.values(body.summary).flat().join('\n'),
  'delegation.opened': ({ body }) => body.task,
  'delegation.ended': ({ body }) => body.result,
};

export function isSpoken({ kind }: Event): boolean {
  return Object.hasOwn(SPOKEN, kind);
}

/** The words of an event, as somebody wrote them. Of bookkeeping: its line. */
export function eventWords(event: Event): string {
  return forKind(SPOKEN, event) ?? summariseEvent(event);
}

/** What the words are as data, if the log has it. */
export function eventData(event: Event): unknown {
  if (event.kind === 'message' || event.kind === 'delegation.ended') return event.body.data;
  return undefined;
}
