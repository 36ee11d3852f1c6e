import { hashText } from '../../context/index.ts';
import { canonicalJson, type GuardStoppedBody, parseExact, type ToolOutcome } from '../../events/index.ts';

/**
 * The results of a turn so far, and the number of steps without a new one. A model that is stuck repeats a call or invents
 * id after id, and every such step costs a whole prompt. Depends only on the calls and results of the turn, so a process
 * that takes the turn over gets the same.
 */
export interface RepeatedCalls {
  /** Keys of the results so far. */
  seen: ReadonlySet<string>;
  /** Steps in a row, up to the last one, without a new result. */
  stale: number;
}

export const NO_CALLS: RepeatedCalls = { seen: new Set(), stale: 0 };

/** A call and its whole output: two outputs may differ only where a preview is cut. */
interface EndedCall {
  /** Null: the agent has no tool of that name. */
  name: string | null;
  args: string;
  outcome: ToolOutcome;
  text: string;
}

/** Steps in a row without a new result from which the model gets a note. */
const NOTE_FROM = 2;
/** Arguments with more values than this are compared unchanged. */
const MAX_BLANKED = 32;
/** Characters of a failure in which arguments are looked for. */
const MAX_SEARCHED = 16_384;
const BLANK = '\0';

/** The state after one more step. Results that are waiting or lost do not count. */
export function afterStep(before: RepeatedCalls, calls: readonly EndedCall[]): RepeatedCalls {
  const keys = calls.flatMap((call) => keyOf(call) ?? []);
  if (keys.length === 0) return before;
  const isStale = keys.every((key) => before.seen.has(key));
  return { seen: new Set([...before.seen, ...keys]), stale: isStale ? before.stale + 1 : 0 };
}

/** The note below the last result of a step without anything new; empty if there is none. */
export function staleNote({ stale }: RepeatedCalls, limit: number): string {
  if (stale < NOTE_FROM || stale >= limit) return '';
  return `${NOTE_BEGINS}${stale} steps brought nothing that this turn had not been told before. Call something else, call it with other arguments, or answer with what you have; after ${limit}${NOTE_ENDS}`;
}

const NOTE_BEGINS = '\n\n[Troupe: the last ';
const NOTE_ENDS = ' such steps the turn is ended.]';

/** What a tool has returned: its result without the note that it repeats itself. */
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
 * The same call with the same result has the same key, however its arguments are written. For a failed call the values of
 * its arguments are ignored: "there is no artifact a1" and "there is no artifact a2" are the same result. So are all
 * invented tools.
 */
function keyOf({ name, args, outcome, text }: EndedCall): string | null {
  if (outcome === 'waiting' || outcome === 'lost') return null;
  if (name === null) return 'no such tool';
  const parsed = parse(args);
  const what = outcome === 'done' ? [canonical(parsed, args), text] : [blanked(text, valuesOf(parsed))];
  return hashText(JSON.stringify([name, outcome, ...what]));
}

/** Null if it is not JSON. */
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
    // Nested too deeply for a recursion.
    return args;
  }
}

/** Each value leaves a mark: without one, failures of `1` at "line 1" and at "line 11" would read the same. */
function blanked(text: string, words: readonly string[]): string {
  const searched = words.reduce((rest, word) => rest.replaceAll(word, BLANK), text.slice(0, MAX_SEARCHED));
  return searched + text.slice(MAX_SEARCHED);
}

/**
 * The strings and numbers of the arguments, and the last segment of each path, because tools name what they looked for:
 * `a1` for `@artifact/a1`. Longest first, since one may contain another.
 */
function valuesOf(parsed: unknown): string[] {
  const words = new Set<string>();
  // A list that grows, because deep arguments would exhaust a recursion.
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
