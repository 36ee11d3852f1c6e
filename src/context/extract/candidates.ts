import type { Event, EventOf, Quote, ToolCall, ToolResultBody } from '../../events/index.ts';
import { isPersonSpeaker, peopleOf, speakerOf } from '../summary/speakers.ts';
import type { Steps } from '../steps.ts';
import { isUntrusted, type Trusted } from '../people.ts';
import { fairLimits, quotableText, readable } from './spoken-text.ts';
import { type Scorable, type Score, scoreEvent } from './score-event.ts';
import { capped, headTail, oneLine } from './cut-text.ts';
import type { Pin } from './goals.ts';
import { JOINT, type Unit, unitsOf } from './units.ts';
import { errorsOf } from './find-errors.ts';
import { filesOf } from './find-names.ts';
import { isShell, shellParts } from './shell.ts';

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
/** Characters of all texts together, more than any window holds. Beyond it each speaker has an equal part. */
const MOST_QUOTABLE = 8 * 1_048_576;
const LEAST_QUOTABLE = 256;
/** Cost of an event beside its text, in characters. */
const DRAFTED = 256;

export interface CandidateOptions {
  count: Count;
  trusted?: Trusted;
  pins?: readonly Pin[];
}

/** Everything that may be quoted, ascending by seq. An event that was quoted before and occurs again counts once. */
export function* candidateSteps(
  events: readonly Event[],
  quotes: readonly Quote[],
  { count, trusted = null, pins = [] }: CandidateOptions,
): Steps<Candidate[]> {
  const drafts = yield* draftsOf(events, count, trusted);
  const known = new Set(drafts.map(({ seq }) => seq));
  const before = quotes.filter(({ seq }) => !known.has(seq)).map(draftOfQuote);
  const pinned = new Map(pins.map(({ seq, why }) => [seq, why]));
  const every = [...before, ...drafts].toSorted((a, b) => a.seq - b.seq);
  const all = every.filter(({ seq }, at) => at >= every.length - MOST_CANDIDATES || pinned.has(seq));
  const most = Math.floor(MOST_JUDGED / Math.max(1, all.length));
  const limits = fairLimits(
    all.map(({ speaker, whole }) => ({ key: speaker, size: whole.length })),
    MOST_QUOTABLE,
  );
  let round = 1 + all.filter(({ role }) => role === 'person').length;
  const candidates: Candidate[] = [];
  for (const [index, { judged, ...draft }] of all.entries()) {
    if (draft.role === 'person') round -= 1;
    const age = all.length === 1 ? 0 : (all.length - 1 - index) / (all.length - 1);
    const scored = scoreEvent({ ...judged, role: draft.role, age }, most);
    const why = pinned.get(draft.seq);
    const place = { age, round: Math.max(1, round), scored };
    candidates.push({ ...limited(draft, limits(draft.speaker)), ...(why && { pinned: why }), ...place });
    yield Math.min(most, judged.text.length + judged.results.length);
  }
  return candidates;
}

function* draftsOf(events: readonly Event[], count: Count, trusted: Trusted): Steps<Draft[]> {
  const results = resultsOf(events);
  const people = peopleOf(events);
  const drafts: Draft[] = [];
  for (const event of events) {
    const draft = draftOf(event, speakerOf(event, people), results, count);
    yield DRAFTED + (draft ? draft.judged.calls.length + draft.judged.results.length : 0);
    if (!draft) continue;
    if (isUntrusted(trusted, event)) draft.untrusted = true;
    drafts.push(draft);
  }
  return drafts;
}

/** A text beyond its speaker's part of what may be quoted is as if both its ends were all of it. */
function limited<D extends Omit<Draft, 'judged'>>(draft: D, limit: number): D {
  if (draft.whole.length <= limit) return draft;
  const { tokens: _, ...rest } = draft;
  return { ...rest, whole: readable(draft.whole, Math.max(LEAST_QUOTABLE, limit)), isCut: true } as D;
}

function draftOf(event: Event, speaker: string, results: Results, count: Count): Draft | null {
  if (event.kind === 'step') return draftOfStep(event, speaker, results.get(event.seq) ?? [], count);
  const whole = quotableText(event);
  if (whole.trim() === '') return null;
  const judged = { text: whole, calls: '', results: '', kept: false };
  const units = () => unitsOf(whole);
  const stored = event.kind === 'message' ? { tokens: event.tokens } : {};
  return { seq: event.seq, speaker, role: roleOf(event), isCut: false, judged, whole, units, ...stored };
}

function roleOf({ kind, author }: Event): Scorable['role'] {
  if (KEY_KINDS.has(kind)) return 'key';
  if (author.kind === 'user') return 'person';
  return author.kind === 'system' ? 'system' : 'reply';
}

function draftOfQuote({ seq, speaker, text, cut = false, untrusted }: Quote): Draft {
  const role = isPersonSpeaker(speaker) ? 'person' : speaker.startsWith('@') ? 'reply' : 'system';
  const judged = { text, calls: '', results: '', kept: true };
  const units = () => unitsOf(text.replaceAll(JOINT, '\n'));
  const draft = { seq, speaker, role, isCut: cut, judged, whole: text, units } as const;
  return untrusted ? { ...draft, untrusted } : draft;
}

/** A possible quote: a message, a key event, a step with its results, or a quote of the previous compaction. */
export interface Candidate {
  seq: number;
  speaker: string;
  /** Words of an untrusted person. */
  untrusted?: true;
  pinned?: Pin['why'];
  role: Scorable['role'];
  /** 0 for the newest, 1 for the oldest. */
  age: number;
  /** 1 for the newest round. A round begins with words of a person. */
  round: number;
  scored: Score;
  /** Whether the whole text is already a shortened quote. */
  isCut: boolean;
  whole: string;
  /** Of `whole`, if they were counted when it was stored. */
  tokens?: number;
  /** The parts of which a digest chooses. */
  units: () => Unit[];
}

/** A candidate before its place among the others is known, with its input for scoring. */
type Draft = Omit<Candidate, 'age' | 'round' | 'scored'> & { judged: Omit<Scorable, 'role' | 'age'> };

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
function excerptOf(
  result: ToolResultBody,
  call: ToolCall,
  { maxTokens, count }: { maxTokens: number; count: Count },
): string {
  const errors = errorsOf(result, call);
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

/** A call as a digest shows it: the commands of a shell, or the files that are changed. */
function shortCall(call: ToolCall, result: ToolResultBody | null): string {
  const commands = isShell(call.name) ? shellParts(call).map((part) => capped(part, MAX_VALUE)) : [];
  const what =
    commands.length > 0 ? commands.slice(0, MOST_COMMANDS).join(' && ') : filesOf(call).modified.join(' ');
  return what === ''
    ? callLine(call, result)
    : `${call.name} ${what} -> ${result ? result.outcome : 'no result'}`;
}

const MOST_COMMANDS = 3;

/** Whether a call changes a file: what it says about that adds nothing unless it failed. */
function changes(call: ToolCall): boolean {
  return filesOf(call).modified.length > 0;
}

/** Quotes a step with a line per call and, if informative, an excerpt of the result. */
function draftOfStep(event: EventOf<'step'>, speaker: string, group: Group, count: Count): Draft {
  const { content, calls } = event.body;
  const outputs = calls.map((call, index) => ({ call, result: group[index] ?? null }));
  const lines = outputs.map(({ call, result }) => callLine(call, result));
  const part = Math.floor(EXCERPT_TOKENS / Math.max(1, calls.length));
  const whole = [
    content.trim(),
    ...outputs.flatMap(({ result }, index) => [lines[index] ?? '', result?.content.trim() ?? '']),
  ]
    .filter((text) => text !== '')
    .join('\n');
  const units = (): Unit[] => [
    ...unitsOf(content),
    ...outputs.map(({ call, result }): Unit => {
      const excerpt =
        result && (result.outcome !== 'done' || !changes(call))
          ? excerptOf(result, call, { maxTokens: part, count })
          : '';
      const text = [shortCall(call, result), ...(excerpt === '' ? [] : [oneLine(excerpt)])].join(': ');
      return { text, heading: null, isCall: true };
    }),
  ];
  const results = outputs.map(({ result }) => result?.content ?? '').join('\n');
  const judged = { text: content, calls: lines.join('\n'), results, kept: false };
  return { seq: event.seq, speaker, role: 'work', isCut: false, judged, whole, units };
}
