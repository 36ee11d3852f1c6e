import type { AgentId, Event, HandoffSummary } from '../../events/index.ts';
import { escapeMarks, fence } from '../fence.ts';
import { fenceKey } from '../hash.ts';
import type { People, Trusted } from '../people.ts';
import type { Steps } from '../steps.ts';
import {
  type Fit,
  fitSteps,
  type FittedRequest,
  levelOptions,
  type RequestDraft,
  transcriptDraft,
} from './fit-request.ts';
import { handoffInstructions } from './instructions.ts';
import { transcriptSteps } from './render-transcript.ts';
import { peopleOf } from './speakers.ts';
import * as z from 'zod';

interface HandoffInput {
  from: AgentId;
  to: AgentId;
  /** The end of the conversation and the agent's work since, oldest first. */
  events: readonly Event[];
  /** The summary of everything before; '' if there is none. */
  before: string;
  secret: string;
  people?: People;
  trusted?: Trusted;
}

/** Requests what the next agent must know, as JSON. Null if not even the shortest request fits. */
export function handoffRequestSteps(input: HandoffInput & Fit): Steps<FittedRequest | null> {
  return fitSteps((level, mostChars) => draftAt(input, level, mostChars), input);
}

function* draftAt(input: HandoffInput, level: number, mostChars: number): Steps<RequestDraft> {
  const { from, to, events, before, secret, trusted = null } = input;
  const people = input.people ?? peopleOf(events);
  const key = fenceKey(secret, `hand over ${events.at(-1)?.seq ?? 0}`);
  const options = { ...levelOptions(level), key, people, trusted };
  const transcript = yield* transcriptSteps(events, options, mostChars);
  const earlier = before.trim() === '' ? [] : [fence('summary', key, escapeMarks(before))];
  return transcriptDraft(transcript, handoffInstructions(from, to), (shown, omitted) => [
    ...earlier.map((text) => `The summary of what came before:\n${text}`),
    ...omitted,
    `The conversation, ending with what @${from} said last:\n${shown}`,
    'Now write the JSON object.',
  ]);
}

/** Models mix up lists and texts; both are accepted. */
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

/** Room for the short fields and a model's thoughts. Longer answers are rejected. */
const MAX_WRITTEN_CHARS = 512 * 1_024;

/** The first JSON object in a model's answer, if it is a handoff summary; else null. */
export function parseHandoff(text: string): HandoffSummary | null {
  if (text.length > MAX_WRITTEN_CHARS) return null;
  const parsed = Written.safeParse(firstObject(text));
  return parsed.success ? { ...parsed.data, why: '' } : null;
}

/** Each start may be scanned to the end of the text, so their number is bounded. */
const MOST_STARTS = 20;

/** Ignores what surrounds the object: a fence, an introduction, a farewell. */
function firstObject(text: string): unknown {
  let starts = 0;
  for (let start = text.indexOf('{'); start !== -1; start = text.indexOf('{', start + 1)) {
    if ((starts += 1) > MOST_STARTS) return null;
    const end = endOfObject(text, start);
    if (end === null) continue;
    try {
      return JSON.parse(text.slice(start, end)) as unknown;
    } catch {
      // A brace in prose: the object may come later.
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
