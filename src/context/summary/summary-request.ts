import type { CompactionBody, Event, EventDraft, Quote, TurnId } from '../../events/index.ts';
import { escapeMarks, fence } from '../fence.ts';
import { fenceKey } from '../hash.ts';
import type { People, Trusted } from '../people.ts';
import { atOnce, type Steps } from '../steps.ts';
import { clip } from './clip.ts';
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
} from './fit-request.ts';
import { conversationInstructions, turnInstructions } from './instructions.ts';
import { block, transcriptSteps } from './render-transcript.ts';
import { header, NOT_TRUSTED, peopleOf } from './speakers.ts';

interface SummaryInput {
  /** The compaction of earlier events. A summary updates it and never starts over. */
  previous: CompactionBody | null;
  /** Everything after `previous.upTo` that the new compaction replaces. */
  events: readonly Event[];
  /** Room for the summary. */
  budgetTokens: number;
  secret: string;
  /** Everybody in the conversation. Default: the speakers in `events`. */
  people?: People;
  trusted?: Trusted;
}

/** `level` 0 shows most, 4 least. */
export function summaryRequest(input: SummaryInput & { level: number }): SummaryRequest {
  return requestAt(input.level, draftOf(input));
}

/** The first level that fits into `maxTokens`; null if none does. */
export function fitSummaryRequest(input: SummaryInput & Fit): FittedRequest | null {
  return atOnce(summaryRequestSteps(input));
}

export function summaryRequestSteps(input: SummaryInput & Fit): Steps<FittedRequest | null> {
  return fitSteps(draftOf(input), input);
}

function draftOf(input: SummaryInput): DraftAt {
  return (level, mostChars) => draftAt(input, level, mostChars);
}

function* draftAt(input: SummaryInput, level: number, mostChars: number): Steps<RequestDraft> {
  const { previous, events, budgetTokens, secret, trusted = null } = input;
  const people = input.people ?? peopleOf(events);
  const last = events.at(-1)?.seq ?? previous?.upTo ?? 0;
  const key = fenceKey(secret, `summarise ${last}`);
  const options = { ...levelOptions(level), key, people, trusted };
  const kept = (previous?.quotes ?? []).map((quote) => quoteBlock(quote, options));
  const { blocks: since, entries: sinceAll } = yield* transcriptSteps(events, options, mostChars);
  // Earlier quotes are older than all events since, so they are written only if all of these fit.
  const isWhole = since.length === sinceAll;
  const system = conversationInstructions(budgetTokens);
  return {
    entries: kept.length + sinceAll,
    written: isWhole ? kept.length + sinceAll : since.length,
    show: (newest) => {
      const left = Math.max(0, kept.length + sinceAll - newest);
      const user = [
        summarySoFar(previous, key),
        ...section(`Kept as it was said, of events 1 to ${previous?.upTo}:`, kept.slice(left)),
        ...leftOut(left),
        ...section(
          sinceLine(previous, events),
          since.slice(Math.max(0, left - kept.length - (sinceAll - since.length))),
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

function section(title: string, blocks: readonly string[]): string[] {
  return blocks.length === 0 ? [] : [`${title}\n${blocks.join('\n')}`];
}

type QuoteOptions = ReturnType<typeof levelOptions> & { key: string; people: People };

function quoteBlock({ seq, speaker, text, untrusted }: Quote, options: QuoteOptions): string {
  const { key, people, messageChars, tails = true } = options;
  const rank = untrusted ? ` ${NOT_TRUSTED}` : '';
  return block(`${header(speaker)} #${seq}${rank}`, clip(text, messageChars, { tail: tails }), key, people);
}

/** A turn that outgrows its window is split: its early steps are summarised while it runs. */
interface TurnPrefixInput {
  turn: TurnId;
  /** The words that the turn answers. */
  trigger: string;
  /** The summary of the steps before `outputs`, from an earlier split of the turn. */
  previous: string | null;
  /** Whole call groups: steps and their results. */
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
  const transcript = yield* transcriptSteps(outputs, { ...options, key }, mostChars);
  const task = fence('transcript', key, escapeMarks(clip(trigger, options.messageChars)));
  const earlier = previous === null ? [] : [fence('summary', key, escapeMarks(previous))];
  return transcriptDraft(transcript, turnInstructions(budgetTokens), (shown, omitted) => [
    `The task, as it was given:\n${task}`,
    ...earlier.map((text) => `The summary of the earlier steps, to be updated:\n${text}`),
    ...omitted,
    `The steps since:\n${shown}`,
    'Now write the summary.',
  ]);
}
