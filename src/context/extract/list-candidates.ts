import type { Event, Quote } from '../../events/index.ts';
import { isPersonSpeaker, peopleOf, speakerOf } from '../summary/speakers.ts';
import type { Steps } from '../steps.ts';
import { isStranger, type Trusted } from '../trusted.ts';
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

/** Of more, the newest are judged: what is older than so many messages is in the facts. */
const MOST_CANDIDATES = 5_000;
/** Characters judged, all together. */
const MOST_JUDGED = 8 * 1_048_576;

/** Everything that may be quoted, ascending by seq. An event that was quoted before and is here again counts once. */
export function* candidateSteps(
  events: readonly Event[],
  quotes: readonly Quote[],
  count: Count,
  trusted: Trusted = null,
): Steps<Candidate[]> {
  const results = resultsOf(events);
  const people = peopleOf(events);
  const drafts = events.flatMap((event) => {
    const draft = draftOf(event, speakerOf(event, people), results, count);
    if (draft && isStranger(trusted, event)) draft.untrusted = true;
    return draft ?? [];
  });
  const known = new Set(drafts.map(({ seq }) => seq));
  const before = quotes.filter(({ seq }) => !known.has(seq)).map((quote) => draftOfQuote(quote, count));
  const all = [...before, ...drafts].toSorted((a, b) => a.seq - b.seq).slice(-MOST_CANDIDATES);
  const most = Math.floor(MOST_JUDGED / Math.max(1, all.length));
  let round = 1 + all.filter(({ role }) => role === 'person').length;
  const candidates: Candidate[] = [];
  for (const [index, { judged, ...draft }] of all.entries()) {
    if (draft.role === 'person') round -= 1;
    const age = all.length === 1 ? 0 : (all.length - 1 - index) / (all.length - 1);
    const scored = scoreEvent({ ...judged, role: draft.role, age }, most);
    candidates.push({ ...draft, round: Math.max(1, round), scored });
    yield Math.min(most, judged.text.length + judged.results.length);
  }
  return candidates;
}

function draftOf(event: Event, speaker: string, results: Results, count: Count): Draft | null {
  if (event.kind === 'step') return draftOfStep(event, speaker, results.get(event.seq) ?? [], count);
  const text = inWords(event);
  if (text.trim() === '') return null;
  const judged = { text, calls: '', results: '', kept: false };
  const role = roleOf(event);
  return { seq: event.seq, speaker, role, isCut: false, judged, text: shortened(text, count) };
}

function roleOf({ kind, author }: Event): Scorable['role'] {
  if (KEY_KINDS.has(kind)) return 'key';
  if (author.kind === 'user') return 'person';
  return author.kind === 'system' ? 'system' : 'reply';
}

function draftOfQuote({ seq, speaker, text, cut = false, untrusted }: Quote, count: Count): Draft {
  const role = isPersonSpeaker(speaker) ? 'person' : speaker.startsWith('@') ? 'reply' : 'system';
  const judged = { text, calls: '', results: '', kept: true };
  const draft = { seq, speaker, role, isCut: cut, judged, text: shortened(text, count) } as const;
  return untrusted ? { ...draft, untrusted } : draft;
}
