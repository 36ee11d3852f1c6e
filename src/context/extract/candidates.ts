import type { Event, EventOf, Quote, ToolCall, ToolResultBody } from '../../events/index.ts';
import { isPersonSpeaker, peopleOf, speakerOf } from '../summary/speakers.ts';
import type { Steps } from '../steps.ts';
import { isUntrusted, type Trusted } from '../people.ts';
import { quotableText } from './spoken-text.ts';
import { type Scorable, type Score, scoreEvent } from './score-event.ts';
import { capped, gist, headTail } from './cut-text.ts';
import { errorsOf } from './lexicon.ts';

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

/** Only the newest candidates are judged. Facts cover what is older. */
const MOST_CANDIDATES = 5_000;
/** Characters judged in all. */
const MOST_JUDGED = 8 * 1_048_576;

/** Everything that may be quoted, ascending by seq. An event that was quoted before and occurs again counts once. */
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
    if (draft && isUntrusted(trusted, event)) draft.untrusted = true;
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
  const text = quotableText(event);
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

/** Lengths of a quote: whole, a preview, or the gist. */
export const LEVELS = ['whole', 'preview', 'gist'] as const;
export type Level = (typeof LEVELS)[number];

/** A possible quote: a message, a key event, a step with its results, or a quote of the previous compaction. */
export interface Candidate {
  seq: number;
  speaker: string;
  /** Words of an untrusted person. */
  untrusted?: true;
  role: Scorable['role'];
  /** 1 for the newest round. A round begins with words of a person. */
  round: number;
  scored: Score;
  /** Whether the whole text is already a shortened quote. */
  isCut: boolean;
  text: (level: Level) => string;
}

/** A candidate before its place among the others is known, with its input for scoring. */
type Draft = Omit<Candidate, 'round' | 'scored'> & { judged: Omit<Scorable, 'role' | 'age'> };

const PREVIEW_TOKENS = 320;
const GIST_TOKENS = 120;

function shortened(text: string, count: (text: string) => number): (level: Level) => string {
  return (level) => {
    if (level === 'whole') return text;
    return level === 'preview'
      ? headTail(text, PREVIEW_TOKENS, count)
      : headTail(gist(text), GIST_TOKENS, count);
  };
}

const MAX_ARGS = 160;
const MAX_VALUE = 80;
const SHORT_RESULT_TOKENS = 40;

/** A call in one line: `read path=src/a.ts -> done`. */
function callLine({ name, args }: ToolCall, result: ToolResultBody | null): string {
  const artifact = result?.artifact === undefined ? '' : `, @artifact/${result.artifact}`;
  return `${name} ${compactArgs(args)} -> ${result ? result.outcome : 'no result'}${artifact}`;
}

/** Longer arguments hold a file; their beginning identifies it. */
const MAX_PARSED = 65_536;

function compactArgs(args: string): string {
  let root: unknown;
  try {
    root = JSON.parse(args.slice(0, MAX_PARSED));
  } catch {
    // Shown as written, since it is not JSON.
    return capped(
      args
        .slice(0, 8 * MAX_ARGS)
        .replace(/\s+/g, ' ')
        .trim(),
      MAX_ARGS,
    );
  }
  if (typeof root !== 'object' || root === null || Array.isArray(root))
    return capped(JSON.stringify(root), MAX_ARGS);
  const fields = Object.entries(root).map(([key, value]) => `${key}=${shortValue(value)}`);
  return capped(fields.join(' '), MAX_ARGS);
}

function shortValue(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return capped(
    text
      .slice(0, 4 * MAX_VALUE)
      .replace(/\s+/g, ' ')
      .trim(),
    MAX_VALUE,
  );
}

/** The part of a result worth quoting: its errors, or all of it if it is short. One tool call retrieves the rest. */
function excerptOf(result: ToolResultBody, maxTokens: number, count: (text: string) => number): string {
  const errors = errorsOf(result);
  if (errors.length > 0) return headTail(errors.join('\n'), maxTokens, count);
  const content = result.content.trim();
  if (content.length > SHORT_RESULT_TOKENS * 32) return '';
  return count(content) <= Math.min(maxTokens, SHORT_RESULT_TOKENS) ? content : '';
}

/** Tokens for the excerpts of all results of one step. */
const EXCERPT_TOKENS = 160;

type Group = readonly (ToolResultBody | null)[];
type Results = ReadonlyMap<number, Group>;

/**
 * The results of each step in the order of its calls. Ids recur from step to step, so a result belongs to the last
 * step.
 */
function resultsOf(events: readonly Event[]): Results {
  const groups = new Map<number, (ToolResultBody | null)[]>();
  const open = new Map<string, EventOf<'step'>>();
  for (const event of events) {
    if (event.kind === 'step') {
      groups.set(
        event.seq,
        event.body.calls.map(() => null),
      );
      open.set(event.author.id, event);
    } else if (event.kind === 'tool.result') {
      const step = open.get(event.author.id);
      const group = step && groups.get(step.seq);
      const at = step
        ? step.body.calls.findIndex(({ id }, index) => id === event.body.call && group?.[index] === null)
        : -1;
      if (group && at >= 0) group[at] = event.body;
    }
  }
  return groups;
}

/** Quotes a step with a line per call and, if informative, an excerpt of the result. */
function draftOfStep(event: EventOf<'step'>, speaker: string, group: Group, count: Count): Draft {
  const { content, calls } = event.body;
  const outputs = calls.map((call, index) => ({ call, result: group[index] ?? null }));
  const lines = outputs.map(({ call, result }) => callLine(call, result));
  const part = Math.floor(EXCERPT_TOKENS / calls.length);
  const text = (level: Level): string => {
    const words = shortened(content, count)(level);
    const shown = outputs.flatMap(({ result }, index) => {
      const output = result?.content ?? '';
      const excerpt =
        level === 'whole'
          ? output.trim()
          : level === 'preview' && result
            ? excerptOf(result, part, count)
            : '';
      return [lines[index] ?? '', ...(excerpt === '' ? [] : [excerpt])];
    });
    return [...(words.trim() === '' ? [] : [words]), ...shown].join('\n');
  };
  const results = outputs.map(({ result }) => result?.content ?? '').join('\n');
  const judged = { text: content, calls: lines.join('\n'), results, kept: false };
  return { seq: event.seq, speaker, role: 'work', isCut: false, judged, text };
}
