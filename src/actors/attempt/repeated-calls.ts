import { hashText } from '../../context/index.ts';
import { canonicalJson, type GuardStoppedBody, parseExact, type ToolOutcome } from '../../events/index.ts';

/**
 * The results of a turn so far, and the number of steps without a new one. A model that is stuck repeats a call or invents
 * one id after the other, and every such step costs a whole prompt. Depends only on the calls and results of the turn, so a
 * process that resumes the turn computes the same.
 */
export interface RepeatedCalls {
  /** Keys of the results so far. */
  seen: ReadonlySet<string>;
  /** Number of the latest steps without a new result. */
  stale: number;
}

export const NO_CALLS: RepeatedCalls = { seen: new Set(), stale: 0 };

/** A call and its whole output. The preview does not suffice, because two outputs may differ only after its end. */
interface EndedCall {
  /** Name of the tool; null if the agent has no such tool. */
  name: string | null;
  args: string;
  outcome: ToolOutcome;
  text: string;
}

/** From this number of steps in a row without a new result on, the model gets a note. */
const NOTE_FROM = 2;
/** The text of a failure is compared unchanged if the arguments have more values than this. */
const MAX_BLANKED = 32;
/** Characters of a failure in which values of arguments are searched. */
const MAX_SEARCHED = 16_384;
const BLANK = '\0';

/** The state after one more step. Ignores calls without a result, which wait or were lost. */
export function afterStep(before: RepeatedCalls, calls: readonly EndedCall[]): RepeatedCalls {
  const keys = calls.flatMap((call) => keyOf(call) ?? []);
  if (keys.length === 0) return before;
  const isStale = keys.every((key) => before.seen.has(key));
  return { seen: new Set([...before.seen, ...keys]), stale: isStale ? before.stale + 1 : 0 };
}

/** The note below the last result of a step without a new result; '' for none. */
export function staleNote({ stale }: RepeatedCalls, limit: number): string {
  if (stale < NOTE_FROM || stale >= limit) return '';
  return `${NOTE_BEGINS}${stale} steps brought nothing that this turn had not been told before. Call something else, call it with other arguments, or answer with what you have; after ${limit}${NOTE_ENDS}`;
}

const NOTE_BEGINS = '\n\n[Troupe: the last ';
const NOTE_ENDS = ' such steps the turn is ended.]';

/** The result of a tool without the note about repetition. */
export function withoutStaleNote(result: string): string {
  const at = result.endsWith(NOTE_ENDS) ? result.lastIndexOf(NOTE_BEGINS) : -1;
  return at < 0 ? result : result.slice(0, at);
}

export function staleStop({ stale }: RepeatedCalls, agent: string, limit: number): GuardStoppedBody | null {
  if (stale < limit) return null;
  return {
    guard: 'repeats',
    message: `@${agent} took ${stale} steps in a row whose calls gave only results it had been given before (at most ${limit})`,
    goOn: 'say what it should do instead',
  };
}

/**
 * A key that is equal for the same call with the same result, however its arguments are written. For a failed call the values
 * of its arguments are ignored: "there is no artifact a1" and "there is no artifact a2" are the same result. All calls of
 * tools that do not exist have the same key.
 */
function keyOf({ name, args, outcome, text }: EndedCall): string | null {
  if (outcome === 'waiting' || outcome === 'lost') return null;
  if (name === null) return 'no such tool';
  const parsed = parse(args);
  const what = outcome === 'done' ? [canonical(parsed, args), text] : [blanked(text, valuesOf(parsed))];
  return hashText(JSON.stringify([name, outcome, ...what]));
}

function parse(args: string): unknown {
  try {
    return parseExact(args);
  } catch {
    return null;
  }
}

function canonical(parsed: unknown, args: string): string {
  try {
    return parsed === null ? args : canonicalJson(parsed);
  } catch {
    // The arguments are nested too deeply for a recursion.
    return args;
  }
}

/** Replaces each value by a mark. Removing it would make failures of `1` at "line 1" and at "line 11" equal. */
function blanked(text: string, words: readonly string[]): string {
  const searched = words.reduce((rest, word) => rest.replaceAll(word, BLANK), text.slice(0, MAX_SEARCHED));
  return searched + text.slice(MAX_SEARCHED);
}

/**
 * The strings and numbers of the arguments, and the last segment of each path, because tools may name only that: `a1` for
 * `@artifact/a1`. Longest first, because one may contain another.
 */
function valuesOf(parsed: unknown): string[] {
  const words = new Set<string>();
  // A growing list instead of a recursion, which deeply nested arguments would exhaust.
  const values = [parsed];
  for (const value of values) {
    if (typeof value === 'string') words.add(value).add(value.slice(value.lastIndexOf('/') + 1));
    else if (typeof value === 'number') words.add(String(value));
    else if (typeof value === 'object' && value !== null)
      for (const inner of Object.values(value)) values.push(inner);
    if (words.size > 2 * MAX_BLANKED) return [];
  }
  words.delete('');
  return [...words].sort((one, other) => other.length - one.length);
}
