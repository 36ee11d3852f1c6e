import {
  type Aspect,
  type Event,
  type EventDraft,
  handoffText,
  isAbout,
  type KindAbout,
  type StepBody,
  taskText,
  type ToolResultBody,
} from '../../events/index.ts';
import { eventText } from '../text/event-text.ts';
import { escapeMarks, fence, indented } from '../text/marks.ts';
import {
  isPerson,
  isUntrusted,
  type People,
  type Trusted,
  AT_THE_END,
  headerText,
  NOT_TRUSTED,
  peopleOf,
  speakerOf,
} from '../text/people.ts';
import { atOnce, type Steps } from '../text/steps.ts';
import { minute, timeTold } from '../render/lines.ts';
import { clip } from '../text/cut-text.ts';

interface TranscriptOptions {
  /** Maximum characters of a result, from head and tail. 0 shows only its outcome. Default: 2,000. */
  resultChars?: number;
  /** Maximum characters of a message. Default: 8,000. */
  messageChars?: number;
  /** Whether long messages keep their tail. Default: true. */
  tails?: boolean;
  /** Whether to show tool calls and results. Default: true. */
  calls?: boolean;
  /** Everybody in the conversation, to distinguish namesakes that are not in the events. */
  people?: People;
  /** Trusted people. Words of other people are marked as not trusted. Default: everybody is trusted. */
  trusted?: Trusted;
}

const ARGS_CHARS = 500;

/**
 * The input for a summary: who said and did what, to whom and when, in one fence. Only lines of the runtime begin at the
 * margin, so no author can forge one.
 */
export function renderTranscript(
  events: readonly (Event | EventDraft)[],
  options: TranscriptOptions & { key: string },
): string {
  return fenced(atOnce(transcriptSteps(events, options, Infinity)).lines, options.key);
}

/** An entry of a transcript. How its time is shown depends on the entry before it. */
export interface TranscriptLine {
  who: string;
  /** The minute; '' for none. */
  at: string;
  /** Kind of event and its ids; '' for plain words. */
  what: string;
  text: string;
}

interface Transcript {
  /** The newest entries that fit into `mostChars`, oldest first. */
  lines: TranscriptLine[];
  entries: number;
}

const LINE_CHARS = 32;

export function* transcriptSteps(
  events: readonly (Event | EventDraft)[],
  options: TranscriptOptions,
  mostChars: number,
): Steps<Transcript> {
  const people = options.people ?? peopleOf(events);
  const newestFirst: TranscriptLine[] = [];
  let entries = 0;
  let chars = 0;
  for (const event of events.toReversed()) {
    const entry = entryOf(event, options);
    if (!entry) continue;
    entries += 1;
    if (chars > mostChars) continue;
    const line = lineOf(event, entry, people, options);
    newestFirst.push(line);
    chars += line.text.length + LINE_CHARS;
    yield line.text.length + LINE_CHARS;
  }
  return { lines: newestFirst.toReversed(), entries };
}

function lineOf(
  event: Event | EventDraft,
  { what, body }: Entry,
  people: People,
  { trusted = null }: TranscriptOptions,
): TranscriptLine {
  const rank = isUntrusted(trusted, event) ? ` ${NOT_TRUSTED}` : '';
  return {
    who: headerText(speakerOf(event, people)) + rank,
    at: 'seq' in event ? minute(event.at) : '',
    what,
    text: wordsIn(body, people),
  };
}

/** The words of an author. Lines that could pass for lines of the runtime are escaped, even though none begins at the margin. */
export function wordsIn(text: string, people: People): string {
  return text.trim() === '' ? '' : escapeMarks(text, (name) => isPerson(people, name, AT_THE_END));
}

/** The lines in their fence. A time is shown only if it adds to the one shown before. */
export function fenced(lines: readonly TranscriptLine[], key: string): string {
  let told: string | null = null;
  const texts: string[] = [];
  for (const { who, at, what, text } of lines) {
    const time = timeTold(at, told);
    if (time !== '') told = at;
    const head = `[${who}${time && ` ${time}`}${what && `, ${what}`}]`;
    texts.push(text === '' ? head : `${head} ${indented(text)}`);
  }
  return fence('transcript', key, texts.join('\n'));
}

interface Entry {
  /** Kind of event and its ids; '' for plain words. */
  what: string;
  body: string;
}

type Words = (what: string, text: string) => Entry;

function entryOf(event: Event | EventDraft, options: TranscriptOptions): Entry | null {
  if (!isAbout(event, 'words')) return null;
  const words = wordsWith(options);
  if (isAbout(event, 'taskOpening') || isAbout(event, 'taskEnd')) return taskEntry(event, words);
  if (isAbout(event, 'upkeep')) return upkeepEntry(event, words);
  switch (event.kind) {
    case 'message':
      return unlessEmpty(words('', eventText(event)));
    case 'injection':
      return event.body.oneStep ? null : unlessEmpty(words('notes', event.body.content));
    case 'step':
      return stepEntry(event.body, words, options);
    case 'tool.result':
      return resultEntry(event.body, options);
    case 'handoff':
      return words('hands over', handoffText(event.body.summary));
    case 'phase.changed':
      return words(`the phase is now ${plain(event.body.phase)}`, eventText(event));
    case 'run.directive': {
      const { run, status, directive, brief } = event.body;
      return words(`directs run ${plain(run)}, its step is ${status}`, `${directive}\n${brief}`.trim());
    }
    case 'turn.failed':
      return unlessEmpty(words(`failed after saying (${plain(event.body.code)})`, eventText(event)));
    case 'turn.aborted':
      return unlessEmpty(words('was interrupted after saying', eventText(event)));
  }
}

function wordsWith({ messageChars = 8_000, tails = true }: TranscriptOptions): Words {
  return (what, text) => ({ what, body: clip(text, messageChars, { tail: tails }) });
}

function unlessEmpty(entry: Entry): Entry | null {
  return entry.body.trim() === '' ? null : entry;
}

function stepEntry(
  { content, calls }: StepBody,
  words: Words,
  { calls: isShown = true }: TranscriptOptions,
): Entry | null {
  const { body } = words('', content);
  const made = calls.map(({ name, args }) => `call ${plain(name)} ${clip(args, ARGS_CHARS)}`);
  return unlessEmpty({ what: '', body: [body, ...(isShown ? made : [])].filter(Boolean).join('\n') });
}

function resultEntry(
  { name, outcome, artifact, content }: ToolResultBody,
  { resultChars = 2_000, calls: isShown = true }: TranscriptOptions,
): Entry | null {
  if (!isShown) return null;
  const whole = artifact === undefined ? '' : `, whole in @artifact/${plain(artifact)}`;
  const body = resultChars === 0 ? '' : clip(content, resultChars);
  return { what: `result of ${plain(name)}: ${outcome}${whole}`, body };
}

const ENDS = { done: 'completes', failed: 'fails at', cancelled: 'cancels' } as const;

type Of<A extends Aspect> = Extract<Event | EventDraft, { kind: KindAbout<A> & KindAbout<'words'> }>;

function taskEntry(event: Of<'taskOpening' | 'taskEnd'>, words: Words): Entry {
  switch (event.kind) {
    case 'delegation.opened': {
      const { assignee, delegation } = event.body;
      return words(`delegates to @${assignee}, delegation ${plain(delegation)}`, taskText(event));
    }
    case 'delegation.ended': {
      const { delegation, outcome, result } = event.body;
      return words(`${ENDS[outcome]} delegation ${plain(delegation)}`, result);
    }
    case 'question':
      return words(`asks, question ${plain(event.body.question)}`, event.body.text);
    case 'question.answered':
      return words(`question ${plain(event.body.question)} is ${event.body.outcome}`, event.body.content);
    case 'approval.requested': {
      const { request, tool, args } = event.body;
      return words(`asks for approval of ${plain(tool)}, request ${plain(request)}`, args);
    }
    case 'approval.decided': {
      const { request, outcome, note, args } = event.body;
      const how = args === undefined ? '' : ` with the arguments ${plain(args)}`;
      return words(`request ${plain(request)} is ${outcome}${how}`, note);
    }
  }
}

function upkeepEntry(event: Of<'upkeep'>, words: Words): Entry | null {
  switch (event.kind) {
    case 'membership.changed': {
      const { body } = event;
      return words(`@${body.agent} ${body.change}`, body.change === 'left' ? body.reason : '');
    }
    case 'mode.changed':
      return words(`the mode is now ${event.body.mode}`, '');
    case 'command':
      return null;
  }
}

/** A name or id from outside, made safe for a header. */
function plain(id: string): string {
  return (
    id
      .replace(/[^\p{L}\p{N}_.:@/#-]/gu, '_')
      .slice(0, 128)
      .toWellFormed() || 'unnamed'
  );
}

/** The request for a summary. */
export interface SummaryRequest {
  system: string;
  user: string;
}

export interface FittedRequest extends SummaryRequest {
  level: number;
  tokens: number;
}

/** A request at one level. `show` renders it with its newest entries, newest last. */
export interface RequestDraft {
  entries: number;
  /** Number of entries that were written, the newest ones. The others cannot fit. */
  written: number;
  show: (newest: number) => SummaryRequest;
}

/** Writes the parts of a request at a level, up to `mostChars`. */
export type DraftAt = (level: number, mostChars: number) => Steps<RequestDraft>;

type LevelOptions = Pick<TranscriptOptions, 'resultChars' | 'calls' | 'tails'> & { messageChars: number };

/** Options of the levels, each of which makes a request smaller. The last one also omits the oldest entries. */
const HEADS: LevelOptions = { calls: false, messageChars: 500, tails: false };
const LEVELS: readonly LevelOptions[] = [
  { resultChars: 2_000, messageChars: 8_000 },
  { resultChars: 500, messageChars: 4_000 },
  { resultChars: 0, messageChars: 4_000 },
  HEADS,
  HEADS,
];
const LAST_LEVEL = LEVELS.length - 1;

/** Number of entries shown at the last level, if it is not chosen to fit. */
const NEWEST_ENTRIES = 40;

export function levelOptions(level: number): LevelOptions {
  return LEVELS[level] ?? HEADS;
}

export function requestAt(level: number, draftAt: DraftAt): SummaryRequest {
  const { entries, show } = atOnce(draftAt(level, Infinity));
  return show(level < LAST_LEVEL ? entries : NEWEST_ENTRIES);
}

export function leftOut(entries: number): string[] {
  return entries <= 0 ? [] : [`[the oldest ${entries} entries are left out here for length]`];
}

/** A draft with the newest lines of a transcript. `write` gets these lines and the line about omitted entries. */
export function transcriptDraft(
  { lines, entries }: Transcript,
  { system, key }: { system: string; key: string },
  write: (shown: string, omitted: string[]) => string[],
): RequestDraft {
  return {
    entries,
    written: lines.length,
    show: (newest) => {
      const shown = fenced(lines.slice(Math.max(0, lines.length - newest)), key);
      return { system, user: write(shown, leftOut(Math.max(0, entries - newest))).join('\n\n') };
    },
  };
}

export interface Fit {
  maxTokens: number;
  count: (text: string) => number;
}

/** More characters per token than any text has, so a text that exceeds it is too long without counting. */
const CHARACTERS_PER_TOKEN = 16;

/** The request at the first level that fits. The last level shows as many of the newest entries as fit. Null if none fits. */
export function* fitSteps(draftAt: DraftAt, { maxTokens, count }: Fit): Steps<FittedRequest | null> {
  const mostChars = Math.max(0, maxTokens) * CHARACTERS_PER_TOKEN;
  const tryAt = (level: number, draft: RequestDraft, newest: number): FittedRequest | null => {
    const { system, user } = draft.show(newest);
    if (system.length + user.length > mostChars) return null;
    const tokens = count(system) + count(user);
    return tokens <= maxTokens ? { system, user, level, tokens } : null;
  };
  for (let level = 0; level < LAST_LEVEL; level += 1) {
    const draft = yield* draftAt(level, mostChars);
    const fitted = draft.written < draft.entries ? null : tryAt(level, draft, draft.entries);
    if (fitted) return fitted;
  }
  const draft = yield* draftAt(LAST_LEVEL, mostChars);
  let best: FittedRequest | null = null;
  let fits = 0;
  let tooMany = draft.written + 1;
  while (tooMany - fits > 1) {
    const middle = Math.floor((fits + tooMany) / 2);
    const fitted = tryAt(LAST_LEVEL, draft, middle);
    best = fitted ?? best;
    if (fitted) fits = middle;
    else tooMany = middle;
    yield mostChars;
  }
  return best;
}
