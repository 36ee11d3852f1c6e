import { hashText } from '../../context/index.ts';
import type { EventOf, GuardStoppedBody, ToolCall } from '../../events/index.ts';

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

/** Steps in a row without a new result from which the model gets a note. */
const NOTE_FROM = 2;
/** Arguments with more strings than this are compared unchanged. */
const MAX_BLANKED = 32;

type Result = Pick<EventOf<'tool.result'>['body'], 'outcome' | 'content' | 'artifact'>;

/** The state after one more step. Results that are waiting or lost do not count. */
export function afterStep(
  before: RepeatedCalls,
  calls: readonly ToolCall[],
  results: readonly Result[],
): RepeatedCalls {
  const keys = results.flatMap((result, index) => keyOf(calls[index] as ToolCall, result) ?? []);
  if (keys.length === 0) return before;
  const isStale = keys.every((key) => before.seen.has(key));
  return { seen: new Set([...before.seen, ...keys]), stale: isStale ? before.stale + 1 : 0 };
}

/** The note below the last result of a step without anything new; empty if there is none. */
export function staleNote({ stale }: RepeatedCalls, limit: number): string {
  if (stale < NOTE_FROM || stale >= limit) return '';
  return `\n\n[Troupe: the last ${stale} steps brought nothing that this turn had not been told before. Call something else, call it with other arguments, or answer with what you have; after ${limit} such steps the turn is ended.]`;
}

export function staleStop({ stale }: RepeatedCalls, agent: string, limit: number): GuardStoppedBody | null {
  if (stale < limit) return null;
  return {
    guard: 'repeats',
    message: `@${agent} took ${stale} steps in a row whose calls gave only results it had been given before (limits.maxRepeats ${limit})`,
    goOn: 'say what it should do instead, or raise limits.maxRepeats in the agents file',
  };
}

/**
 * The same call with the same result has the same key. For a failed call the strings of its arguments are ignored: "there
 * is no artifact a1" and "there is no artifact a2" are the same result.
 */
function keyOf({ name, args }: ToolCall, { outcome, content, artifact }: Result): string | null {
  if (outcome === 'waiting' || outcome === 'lost') return null;
  const text = artifact === undefined ? content : content.replaceAll(artifact, '');
  const what = outcome === 'done' ? [args, text] : [blanked(text, textsOf(args))];
  return hashText(JSON.stringify([name, outcome, ...what]));
}

function blanked(text: string, words: readonly string[]): string {
  return words.reduce((rest, word) => rest.replaceAll(word, ''), text);
}

/**
 * The top-level strings of the arguments, and the last segment of each path, because tools name what they looked for:
 * `a1` for `@artifact/a1`. Longest first, since one may contain another.
 */
function textsOf(args: string): string[] {
  const texts = valuesOf(args).filter((value) => typeof value === 'string');
  if (texts.length > MAX_BLANKED) return [];
  const words = texts.flatMap((text) => [text, text.slice(text.lastIndexOf('/') + 1)]);
  return words.filter((word) => word !== '').sort((one, other) => other.length - one.length);
}

function valuesOf(args: string): unknown[] {
  try {
    const parsed: unknown = JSON.parse(args);
    return typeof parsed === 'object' && parsed !== null ? Object.values(parsed) : [];
  } catch {
    return [];
  }
}
