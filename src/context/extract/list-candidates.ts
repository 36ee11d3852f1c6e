import type { Event, Quote } from '../../events/index.ts';
import { isPersonSpeaker, peopleOf, speakerOf } from '../summary/speakers.ts';
import { type Candidate, type Draft, shortened } from './candidate.ts';
import { inWords } from './said.ts';
import { scoreEvent, type Scorable } from './score-event.ts';
import { draftOfStep, type Results, resultsOf } from './step-draft.ts';

type Count = (text: string) => number;

const KEY_KINDS: ReadonlySet<Event['kind']> = new Set([
  'handoff',
  'delegation.opened',
  'delegation.completed',
  'delegation.aborted',
  'question',
  'approval.requested',
  'approval.decided',
  'mode.changed',
  'phase.changed',
  'run.directive',
]);

/** Everything that may be quoted, ascending by seq. An event that was quoted before and is here again counts once. */
export function listCandidates(
  events: readonly Event[],
  quotes: readonly Quote[],
  count: Count,
): Candidate[] {
  const results = resultsOf(events);
  const people = peopleOf(events);
  const drafts = events.flatMap((event) => draftOf(event, speakerOf(event, people), results, count) ?? []);
  const known = new Set(drafts.map(({ seq }) => seq));
  const before = quotes.filter(({ seq }) => !known.has(seq)).map((quote) => draftOfQuote(quote, count));
  const all = [...before, ...drafts].toSorted((a, b) => a.seq - b.seq);
  let round = 1 + all.filter(({ role }) => role === 'person').length;
  return all.map(({ judged, ...draft }, index) => {
    if (draft.role === 'person') round -= 1;
    const age = all.length === 1 ? 0 : (all.length - 1 - index) / (all.length - 1);
    const scored = scoreEvent({ ...judged, role: draft.role, age });
    return { ...draft, round: Math.max(1, round), scored };
  });
}

function draftOf(event: Event, speaker: string, results: Results, count: Count): Draft | null {
  if (event.kind === 'step') return draftOfStep(event, speaker, results.get(event.seq) ?? [], count);
  const text = inWords(event);
  if (text.trim() === '') return null;
  const judged = { text, calls: '', results: '', kept: false };
  return { seq: event.seq, speaker, role: roleOf(event), isCut: false, judged, text: shortened(text, count) };
}

function roleOf({ kind, author }: Event): Scorable['role'] {
  if (KEY_KINDS.has(kind)) return 'key';
  if (author.kind === 'user') return 'person';
  return author.kind === 'system' ? 'system' : 'reply';
}

function draftOfQuote({ seq, speaker, text, cut = false }: Quote, count: Count): Draft {
  const role = isPersonSpeaker(speaker) ? 'person' : speaker.startsWith('@') ? 'reply' : 'system';
  const judged = { text, calls: '', results: '', kept: true };
  return { seq, speaker, role, isCut: cut, judged, text: shortened(text, count) };
}
