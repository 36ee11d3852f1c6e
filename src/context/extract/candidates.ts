import type { Event, EventOf, Quote, ToolCall, ToolResultBody } from '../../events/index.ts';
import { isPersonSpeaker, peopleOf, speakerOf, isUntrusted, type Trusted } from '../text/people.ts';
import type { Steps } from '../text/steps.ts';
import { fairLimits, quotableText, readable } from './spoken-text.ts';
import { capped, headTail, oneLine, sentencesOf, bare, withoutEnd } from '../text/cut-text.ts';
import { CONSTRAINT, DECISION, PENDING, REFUSAL } from './lexicon.ts';
import type { Pin, Pins } from './goals.ts';
import { errorsOf, filesOf, isShell, shellParts, errorLines, findWords } from './findings.ts';

type Count = (text: string) => number;

const KEY_KINDS: ReadonlySet<Event['kind']> = new Set([
  'handoff',
  'delegation.opened',
  'delegation.ended',
  'question',
  'approval.requested',
  'approval.decided',
  'mode.changed',
  'phase.changed',
  'run.directive',
]);

/** Maximum candidates that are judged, the newest. Facts cover older events. */
const MOST_CANDIDATES = 5_000;
const MOST_JUDGED = 8 * 1_048_576;
/** Maximum characters of all texts, more than any window holds. If there are more, each speaker gets an equal share. */
const MOST_QUOTABLE = 8 * 1_048_576;
const LEAST_QUOTABLE = 256;
/** Cost of an event besides its text, in characters. */
const DRAFTED = 256;

const NO_PINS: Pins = { pinned: [], replaced: new Map() };

interface CandidateOptions {
  count: Count;
  trusted?: Trusted;
  pins?: Pins;
}

/** Everything that may be quoted, ascending by seq. An event that the previous compaction quoted too occurs once. */
export function* candidateSteps(
  events: readonly Event[],
  quotes: readonly Quote[],
  { count, trusted = null, pins = NO_PINS }: CandidateOptions,
): Steps<Candidate[]> {
  const drafts = yield* draftsOf(events, count, trusted);
  const known = new Set(drafts.map(({ seq }) => seq));
  const before = quotes.filter(({ seq }) => !known.has(seq)).map(draftOfQuote);
  const pinned = new Map(pins.pinned.map((pin) => [pin.seq, pin]));
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
    const { tells, ...scored } = scoreEvent({ ...judged, role: draft.role, age }, most);
    const pin = pinned.get(draft.seq);
    const replacedBy = pins.replaced.get(draft.seq);
    const place = { age, round: Math.max(1, round), scored, tells };
    const standing = { ...(pin && { pinned: pin.why, by: pin.by }), ...(replacedBy && { replacedBy }) };
    candidates.push({ ...limited(draft, limits(draft.speaker)), ...standing, ...place });
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

/** Cuts a text that exceeds its speaker's share to its two ends. */
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
  /** Set for words of an untrusted person. */
  untrusted?: true;
  pinned?: Pin['why'];
  /** Id of the author, as in `Quote`. */
  by?: string;
  replacedBy?: number;
  role: Scorable['role'];
  /** 0 for the newest, 1 for the oldest. */
  age: number;
  /** 1 for the newest round. A round begins with words of a person. */
  round: number;
  scored: Score;
  /** Whether the words hold more than a remark: a demand, a decision, a name, a number, code or an error. */
  tells: boolean;
  /** Whether `whole` is already shortened. */
  isCut: boolean;
  whole: string;
  /** Token count of `whole`, if it was stored with the event. */
  tokens?: number;
  /** The parts from which a digest chooses. */
  units: () => Unit[];
}

/** A candidate before its age and round are known, with its input for scoring. */
type Draft = Omit<Candidate, 'age' | 'round' | 'scored' | 'tells'> & {
  judged: Omit<Scorable, 'role' | 'age'>;
};

const MAX_ARGS = 160;
const MAX_VALUE = 80;
const SHORT_RESULT_TOKENS = 40;

function callLine({ name, args }: ToolCall, result: ToolResultBody | null): string {
  const artifact = result?.artifact === undefined ? '' : `, @artifact/${result.artifact}`;
  return `${name} ${compactArgs(args)} -> ${result ? result.outcome : 'no result'}${artifact}`;
}

/** Arguments with more characters are not parsed: they hold a file, and their beginning identifies it. */
const MAX_PARSED = 65_536;

function compactArgs(args: string): string {
  let root: unknown;
  try {
    root = JSON.parse(args.slice(0, MAX_PARSED));
  } catch {
    // Arguments that are not JSON are shown as written.
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

/** The part of a result that is worth quoting: its errors, or all of it if it is short. One tool call reads the rest. */
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

const EXCERPT_TOKENS = 160;

type Group = readonly (ToolResultBody | null)[];
type Results = ReadonlyMap<number, Group>;

/**
 * The results of each step in the order of its calls. Steps may use the same call ids, so a result belongs to the last step
 * with its id.
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

/** A call as a digest shows it: the commands of a shell, or the changed files. */
function shortCall(call: ToolCall, result: ToolResultBody | null): string {
  const commands = isShell(call.name) ? shellParts(call).map((part) => capped(part, MAX_VALUE)) : [];
  const what =
    commands.length > 0 ? commands.slice(0, MOST_COMMANDS).join(' && ') : filesOf(call).modified.join(' ');
  return what === ''
    ? callLine(call, result)
    : `${call.name} ${what} -> ${result ? result.outcome : 'no result'}`;
}

const MOST_COMMANDS = 3;

/** Whether a call changes a file. The result of such a call is informative only if it failed. */
function changes(call: ToolCall): boolean {
  return filesOf(call).modified.length > 0;
}

/** A step as a quote: a line per call and, if it is informative, an excerpt of the result. */
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

interface Scorable {
  /** The words of the event; '' if it has only calls. */
  text: string;
  /** The calls, one line each. Words in their arguments are code and never demands. */
  calls: string;
  results: string;
  role: 'person' | 'key' | 'reply' | 'work' | 'system';
  /** 0 for the newest, 1 for the oldest. */
  age: number;
  /** Whether the previous compaction quoted it. */
  kept: boolean;
}

interface Score {
  score: number;
  why: string[];
}

/** Characters judged of a long text, at its two ends: the important words are there, and judging stays cheap. */
const MAX_JUDGED = 6_000;
const LARGE_RESULT = 2_000;
const CODE = /```|=>|\bfunction\b|\bclass\b|[{};]\s*$/m;
const NUMBER = /(?:^|[^\w.])[$€£¥]?\d[\d.,:]*\d(?:%|\b)/g;

const ROLE_POINTS = { person: 4, key: 4, reply: 2, work: 0, system: 1 } as const;

/** Scores how much an event is worth keeping, as a sum of named parts. Judges at most `most` characters. */
function scoreEvent(
  { text, calls, results, role, age, kept }: Scorable,
  most: number = MAX_JUDGED,
): Score & { tells: boolean } {
  const judged = (written: string) => bothEnds(written, Math.min(most, MAX_JUDGED));
  const spoken = judged(text);
  const sentences = sentencesOf(spoken);
  const matching = (pattern: RegExp): number => sentences.filter((sentence) => pattern.test(sentence)).length;
  const { paths, ids } = findWords(`${spoken}\n${judged(calls)}`, true);
  const parts: [name: string, points: number][] = [
    [role, ROLE_POINTS[role]],
    ['recency', (role === 'person' ? 1.5 : 3) * (1 - age)],
    ['obligation', upTo(4, 1.5 * (matching(CONSTRAINT) + matching(REFUSAL)))],
    ['decision', upTo(3, 1.5 * matching(DECISION))],
    ['open', upTo(3, 1.5 * matching(PENDING))],
    ['paths', upTo(2, 0.5 * paths.length)],
    ['ids', upTo(2, 0.5 * ids.length)],
    ['numbers', upTo(3, (role === 'person' ? 1.5 : 0.5) * (spoken.match(NUMBER)?.length ?? 0))],
    ['code', CODE.test(spoken) ? 0.5 : 0],
    ['errors', upTo(4, 2 * errorLines(`${judged(results)}\n${spoken}`).length)],
    ['large result', -upTo(1.5, 0.5 * Math.log2(Math.max(1, results.length / LARGE_RESULT)))],
  ];
  const tells = parts.slice(TELLING).some(([, points]) => points > 0);
  // Words that tell something come before remarks, also before those that were kept for want of better words.
  parts.splice(1, 0, ['kept before', kept ? 2 : 0], ['tells', tells && role === 'person' ? 1 : 0]);
  const counted = parts
    .map(([name, points]) => [name, round(points)] as const)
    .filter(([, points]) => points !== 0);
  return {
    tells,
    score: round(counted.reduce((sum, [, points]) => sum + points, 0)),
    why: counted.map(([name, points]) => `${name} ${points > 0 ? '+' : ''}${points}`),
  };
}

/** Index of the first part of a score that says something of the words themselves. */
const TELLING = 2;

function bothEnds(text: string, most: number): string {
  if (text.length <= most) return text;
  const half = Math.floor(most / 2);
  return `${text.slice(0, half)}\n${text.slice(text.length - half)}`;
}

function upTo(max: number, points: number): number {
  return Math.min(max, points);
}

/** Rounds to hundredths, so that sums are readable and equal on every machine. */
function round(points: number): number {
  return Math.round(points * 100) / 100;
}

/** A sentence, an item or a call: the smallest part of a message that a digest shows. */
export interface Unit {
  text: string;
  /** The heading above it, without which an item may not be understood. */
  heading: string | null;
  isCall: boolean;
  /** Set for an item of a list, a row of a table and a short piece of code. */
  isItem?: true;
}

/** Joins parts that were on separate lines. */
export const JOINT = ' / ';
const LEFT_OUT = ' … ';

const ITEM = /^(?:[-*+•]|\d{1,3}[.)])\s+\S/;
const HEADING = /^(?:#{1,6}\s|(?:\*\*|__)[^*_]{2,80}(?:\*\*|__):?$)|[:：](?:\*\*)?$/;
const MAX_HEADING = 60;
const MAX_UNIT = 280;
/** Characters of a text that are divided into parts. Of a longer text these are its two ends. */
const MOST_CHARS = 16_384;
const MOST_UNITS = 160;

/** The parts of a text. Omits long code in fences, because files have it. */
function unitsOf(text: string): Unit[] {
  const units: Unit[] = [];
  let heading: string | null = null;
  for (const { line, isCode } of linesOf(text)) {
    if (isCode) {
      if (line.length <= MAX_UNIT) units.push({ text: line, heading, isCall: false, isItem: true });
      continue;
    }
    if (line.length <= MAX_HEADING && HEADING.test(line)) {
      heading = withoutEnd(bare(line), '*_:：').replace(/^[*_]+/, '');
      continue;
    }
    const isItem = ITEM.test(line) || line.startsWith('|');
    if (!isItem && units.at(-1)?.heading === heading) heading = null;
    const parts = (isItem ? [bare(line)] : sentencesOf(line)).filter((part) => /[\p{L}\p{N}]/u.test(part));
    for (const part of parts)
      units.push({ text: capped(part, MAX_UNIT), heading, isCall: false, ...(isItem && { isItem }) });
  }
  const half = MOST_UNITS / 2;
  return units.length <= MOST_UNITS ? units : [...units.slice(0, half), ...units.slice(-half)];
}

/** The lines of a text, and its code in fences, each block on one line. */
function linesOf(text: string): { line: string; isCode: boolean }[] {
  const lines: { line: string; isCode: boolean }[] = [];
  let code: string[] | null = null;
  for (const written of bothEnds(text, MOST_CHARS).split(/[\n\r\v\f\u0085\u2028\u2029]/)) {
    const line = written.trim();
    if (line.startsWith('```')) {
      if (code && code.length > 0) lines.push({ line: code.join(' '), isCode: true });
      code = code ? null : [];
    } else if (line !== '' && code) code.push(line);
    else if (line !== '') lines.push({ line, isCode: false });
  }
  return lines;
}

/** The chosen parts of a message on one line, in their order, with a sign where parts between them were left out. */
export function joinUnits(units: readonly Unit[], chosen: readonly number[]): string {
  let line = '';
  let last = -1;
  let heading: string | null = null;
  for (const at of chosen) {
    const unit = units[at];
    if (!unit) continue;
    if (last !== -1) line += at === last + 1 ? JOINT : LEFT_OUT;
    if (unit.heading !== null && unit.heading !== heading) line += `${unit.heading}: `;
    heading = unit.heading;
    line += unit.text;
    last = at;
  }
  return line.replace(/[\n\r\v\f\u0085\u2028\u2029]+/g, ' ').trim();
}
