import * as z from 'zod';
import {
  type CompactionBody,
  type Event,
  type EventDraft,
  type Quote,
  type TurnId,
  type AgentId,
  type HandoffSummary,
  tryParse,
} from '../../events/index.ts';
import { TEXTS } from '../../events/model-texts.ts';
import { escapeMarks, fence } from '../text/marks.ts';
import { fenceKey } from '../text/hash.ts';
import { headerText, NOT_TRUSTED, type People, type Trusted, peopleOf } from '../text/people.ts';
import { atOnce, type Steps } from '../text/steps.ts';
import { clip } from '../text/cut-text.ts';
import {
  type DraftAt,
  type Fit,
  fitSteps,
  type FittedRequest,
  leftOut,
  levelOptions,
  requestAt,
  type RequestDraft,
  type SummaryRequest,
  transcriptDraft,
  fenced,
  transcriptSteps,
  type TranscriptLine,
  wordsIn,
} from './transcript.ts';

interface SummaryInput {
  /** The compaction of earlier events, which the new summary updates. */
  previous: CompactionBody | null;
  /** The events after `previous.upTo` that the new compaction replaces. */
  events: readonly Event[];
  budgetTokens: number;
  secret: string;
  /** Everybody in the conversation. Default: the speakers in `events`. */
  people?: People;
  trusted?: Trusted;
}

/** A request for a summary. `level` 0 shows most of the events, 4 least. */
export function summaryRequest(input: SummaryInput & { level: number }): SummaryRequest {
  return requestAt(input.level, draftOf(input));
}

/** The request at the first level that fits into `maxTokens`; null if none does. */
export function fitSummaryRequest(input: SummaryInput & Fit): FittedRequest | null {
  return atOnce(summaryRequestSteps(input));
}

export function summaryRequestSteps(input: SummaryInput & Fit): Steps<FittedRequest | null> {
  return fitSteps(draftOf(input), input);
}

function draftOf(input: SummaryInput): DraftAt {
  return (level, mostChars) => summaryDraft(input, level, mostChars);
}

function* summaryDraft(input: SummaryInput, level: number, mostChars: number): Steps<RequestDraft> {
  const { previous, events, budgetTokens, secret, trusted = null } = input;
  const people = input.people ?? peopleOf(events);
  const last = events.at(-1)?.seq ?? previous?.upTo ?? 0;
  const key = fenceKey(secret, `summarise ${last}`);
  const options = { ...levelOptions(level), people, trusted };
  const kept = (previous?.quotes ?? []).map((quote) => quoteLine(quote, options));
  const { lines: since, entries: sinceAll } = yield* transcriptSteps(events, options, mostChars);
  // Earlier quotes are older than all these events, so they are written only if all events fit.
  const isWhole = since.length === sinceAll;
  const system = conversationInstructions(budgetTokens);
  return {
    entries: kept.length + sinceAll,
    written: isWhole ? kept.length + sinceAll : since.length,
    show: (newest) => {
      const left = Math.max(0, kept.length + sinceAll - newest);
      const user = [
        summarySoFar(previous, key),
        ...section(`Kept as it was said, of events 1 to ${previous?.upTo}:`, kept.slice(left), key),
        ...leftOut(left),
        ...section(
          sinceLine(previous, events),
          since.slice(Math.max(0, left - kept.length - (sinceAll - since.length))),
          key,
        ),
        'Now write the summary.',
      ];
      return { system, user: user.join('\n\n') };
    },
  };
}

function summarySoFar(previous: CompactionBody | null, key: string): string {
  if (!previous || previous.summary.trim() === '') return 'There is no summary so far.';
  const text = fence('summary', key, escapeMarks(previous.summary));
  return `The summary so far, of events 1 to ${previous.upTo}, to be updated:\n${text}`;
}

function sinceLine(previous: CompactionBody | null, events: readonly Event[]): string {
  const range = `events ${events[0]?.seq} to ${events.at(-1)?.seq}`;
  return previous ? `What came since, ${range}:` : `The conversation, ${range}:`;
}

function section(title: string, lines: readonly TranscriptLine[], key: string): string[] {
  return lines.length === 0 ? [] : [`${title}\n${fenced(lines, key)}`];
}

type QuoteOptions = ReturnType<typeof levelOptions> & { people: People };

function quoteLine(
  { seq, speaker, text, untrusted, replacedBy }: Quote,
  { people, messageChars, tails = true }: QuoteOptions,
): TranscriptLine {
  const rank = untrusted ? ` ${NOT_TRUSTED}` : '';
  const what = replacedBy === undefined ? '' : `replaced by #${replacedBy}`;
  const words = wordsIn(clip(text, messageChars, { tail: tails }), people);
  return { who: `${headerText(speaker)} #${seq}${rank}`, at: '', what, text: words };
}

/** Input for summarizing the early steps of a turn that outgrew its window and is still running. */
interface TurnPrefixInput {
  turn: TurnId;
  trigger: string;
  /** The summary of the steps before `outputs`, from an earlier split of the turn. */
  previous: string | null;
  /** The steps with all their results. */
  outputs: readonly EventDraft[];
  budgetTokens: number;
  secret: string;
}

export function turnPrefixRequest(input: TurnPrefixInput & { level: number }): SummaryRequest {
  return requestAt(input.level, (level, mostChars) => prefixDraftAt(input, level, mostChars));
}

export function turnPrefixSteps(input: TurnPrefixInput & Fit): Steps<FittedRequest | null> {
  return fitSteps((level, mostChars) => prefixDraftAt(input, level, mostChars), input);
}

function* prefixDraftAt(input: TurnPrefixInput, level: number, mostChars: number): Steps<RequestDraft> {
  const { turn, trigger, previous, outputs, budgetTokens, secret } = input;
  const key = fenceKey(secret, `summarise ${turn}`);
  const options = levelOptions(level);
  const transcript = yield* transcriptSteps(outputs, options, mostChars);
  const task = fence('transcript', key, escapeMarks(clip(trigger, options.messageChars)));
  const earlier = previous === null ? [] : [fence('summary', key, escapeMarks(previous))];
  return transcriptDraft(transcript, { system: turnInstructions(budgetTokens), key }, (shown, omitted) => [
    `The task, as it was given:\n${task}`,
    ...earlier.map((text) => `The summary of the earlier steps, to be updated:\n${text}`),
    ...omitted,
    `The steps since:\n${shown}`,
    'Now write the summary.',
  ]);
}

interface HandoffInput {
  from: AgentId;
  to: AgentId;
  /** The last events of the conversation and of the agent's work, oldest first. */
  events: readonly Event[];
  /** The summary of everything before; '' if there is none. */
  before: string;
  secret: string;
  people?: People;
  trusted?: Trusted;
}

/** A request for what the next agent must know, as JSON. Null if not even the shortest request fits. */
export function handoffRequestSteps(input: HandoffInput & Fit): Steps<FittedRequest | null> {
  return fitSteps((level, mostChars) => handoffDraft(input, level, mostChars), input);
}

function* handoffDraft(input: HandoffInput, level: number, mostChars: number): Steps<RequestDraft> {
  const { from, to, events, before, secret, trusted = null } = input;
  const people = input.people ?? peopleOf(events);
  const key = fenceKey(secret, `hand over ${events.at(-1)?.seq ?? 0}`);
  const options = { ...levelOptions(level), people, trusted };
  const transcript = yield* transcriptSteps(events, options, mostChars);
  const earlier = before.trim() === '' ? [] : [fence('summary', key, escapeMarks(before))];
  return transcriptDraft(transcript, { system: TEXTS.summary.handoff(from, to), key }, (shown, omitted) => [
    ...earlier.map((text) => `The summary of what came before:\n${text}`),
    ...omitted,
    `The conversation, ending with what @${from} said last:\n${shown}`,
    'Now write the JSON object.',
  ]);
}

/** A text or a list of texts, because models mix up the two. */
const Text = z
  .union([z.string(), z.array(z.string()).transform((items) => items.join('\n'))])
  .nullish()
  .transform((text) => text?.trim() ?? '');
const List = z
  .union([z.array(z.string()), z.string().transform((item) => [item])])
  .nullish()
  .transform((items) => (items ?? []).map((item) => item.trim()).filter((item) => item !== ''));

const Written = z.object({
  goal: Text.refine((goal) => goal !== ''),
  done: Text,
  state: Text,
  next: Text,
  openQuestions: List,
  artifacts: List,
});

/** Maximum characters of an answer, with the model's thoughts. Longer answers are rejected. */
const MAX_WRITTEN_CHARS = 512 * 1_024;

/** The first JSON object in a model's answer, if it is a handoff summary; else null. */
export function parseHandoff(text: string): HandoffSummary | null {
  if (text.length > MAX_WRITTEN_CHARS) return null;
  const parsed = tryParse(Written, firstObject(text));
  return parsed.success ? { ...parsed.data, why: '' } : null;
}

/** Maximum opening braces that are tried, because each may be scanned to the end of the text. */
const MOST_STARTS = 20;

/** The first JSON object in a text. Ignores text around it, such as a fence or an introduction. */
function firstObject(text: string): unknown {
  let starts = 0;
  for (let start = text.indexOf('{'); start !== -1; start = text.indexOf('{', start + 1)) {
    if ((starts += 1) > MOST_STARTS) return null;
    const end = endOfObject(text, start);
    if (end === null) continue;
    try {
      return JSON.parse(text.slice(start, end)) as unknown;
    } catch {
      // This brace belongs to prose. The object may come later.
    }
  }
  return null;
}

/** The end of the object that begins at `start`. Braces in strings do not count. */
function endOfObject(text: string, start: number): number | null {
  let depth = 0;
  let isString = false;
  for (let at = start; at < text.length; at++) {
    const char = text[at];
    if (isString && char === '\\') at += 1;
    else if (char === '"') isString = !isString;
    else if (isString) continue;
    else if (char === '{') depth += 1;
    else if (char === '}' && (depth -= 1) === 0) return at + 1;
  }
  return null;
}

/** A token of prose is about 0.75 words. This is less, so that a summary of the requested length fits. */
const WORDS_PER_TOKEN = 0.7;
const MIN_WORDS = 50;

/** Identifies the section of rules and limits, in lower case. */
export const CONSTRAINTS_HEADING = 'constraints';

function conversationInstructions(budgetTokens: number): string {
  return TEXTS.summary.conversation(wordsFor(budgetTokens));
}

function turnInstructions(budgetTokens: number): string {
  return TEXTS.summary.turn(wordsFor(budgetTokens));
}

function wordsFor(budgetTokens: number): number {
  return Math.max(MIN_WORDS, Math.floor(budgetTokens * WORDS_PER_TOKEN));
}
