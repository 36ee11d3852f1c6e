import * as z from 'zod';
import type { HandoffSummary } from '../../events/index.ts';

/** Models write a list where a text is asked for, and the other way round; that much is forgiven. */
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

/** A handful of short fields, and whatever a model thinks before. More is not looked at. */
const MAX_WRITTEN_CHARS = 512 * 1_024;

/** The first JSON object in what a model wrote, if it is a hand-over; null for anything else. */
export function parseHandoff(text: string): HandoffSummary | null {
  if (text.length > MAX_WRITTEN_CHARS) return null;
  const parsed = Written.safeParse(firstObject(text));
  return parsed.success ? { ...parsed.data, why: '' } : null;
}

/** Each is searched for its end, perhaps to the end of the text: braces alone must not make that slow. */
const MOST_STARTS = 20;

/** Whatever stands around it: a fence, an introduction, a farewell. */
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

/** Behind the brace that closes the one at `start`; braces in strings do not count. */
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
