import { createHash } from 'node:crypto';
import { type ImageRef, parseExact, type ToolCall, type Usage } from '../events/index.ts';
import type { ModelRequest } from './provider.ts';

/** An id for a call that came without one: the same if the same step is asked again. */
export function mintCallId(trace: ModelRequest['trace'], index: number): string {
  return `call_${trace.turn}_${trace.step}_${index}`.replace(/[^A-Za-z0-9_-]/g, '_');
}

/** The id itself if the vendor accepts it, else a digest: call and result are renamed alike. */
export function fitCallId(id: string, accepted: RegExp): string {
  if (accepted.test(id)) return id;
  return `call_${createHash('sha256').update(id).digest('hex').slice(0, 32)}`;
}

/** Models invent tool names that vendors then refuse to read back for the rest of the conversation. */
export function fitToolName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'unknown';
}

/**
 * Arguments for vendors that take them as text: some servers parse them and refuse the whole request over one invalid
 * text.
 */
export function fitArgs(args: string): string {
  return args !== '' && parseArgs(args) ? args.toWellFormed() : '{}';
}

/** A cache key for a vendor: a digest, because the field takes 64 characters and the ids are private. */
export function fitCacheKey(cacheKey: string): string {
  return createHash('sha256').update(cacheKey).digest('base64url');
}

/** How often arguments are looked for in a JSON string in a JSON string. */
const MOST_ENCODED = 3;
const EMPTY_FIRST = /^\{\s*\}\s*(?=\{)/;

/**
 * The text of arguments, from what servers send in its place: an object, null, JSON encoded twice, an empty object before the
 * real one, the same object twice in a row. What is none of these stays as it is, and the tool refuses it with words.
 */
export function argsText(given: unknown, depth = 0): string {
  if (typeof given !== 'string') return given === null || given === undefined ? '' : JSON.stringify(given);
  const text = given.trim();
  if (text === 'null') return '';
  if (text.startsWith('"')) return (depth < MOST_ENCODED && decoded(text, depth)) || given;
  if (!text.startsWith('{')) return given;
  if (EMPTY_FIRST.test(text)) return text.replace(EMPTY_FIRST, '');
  const half = text.length / 2;
  return text.length % 2 === 0 && text[half] === '{' && text.slice(half) === text.slice(0, half)
    ? text.slice(half)
    : given;
}

/** The object that this JSON string holds as text; '' if it holds none. */
function decoded(text: string, depth: number): string {
  try {
    const args = argsText(JSON.parse(text), depth + 1);
    return parseArgs(args) ? args : '';
  } catch {
    return ''; // No JSON: it stays as it is.
  }
}

/** The arguments as an object; null if the text is not one. */
export function parseArgs(args: string): Record<string, unknown> | null {
  if (args.trim() === '') return {};
  try {
    const value = parseExact(args);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null; // Not JSON: the caller decides what follows.
  }
}

/** The images that a message names, with their bytes in base64. A request may lack some of them. */
export function shownImages(
  named: readonly ImageRef[] = [],
  images: ModelRequest['images'],
): { mediaType: ImageRef['mediaType']; data: string; url: string }[] {
  return named.flatMap(({ hash, mediaType }) => {
    const data = images?.get(hash);
    return data === undefined ? [] : [{ mediaType, data, url: `data:${mediaType};base64,${data}` }];
  });
}

export interface FinishedCalls {
  /** The calls that may be made. */
  calls: ToolCall[];
  /** The tool of a call that began and did not come whole. */
  broken?: string | undefined;
  /** The answer was cut, whatever its end is called. */
  isCut: boolean;
}

/**
 * The calls of a finished answer that its model has written to their end. The limit of output tokens may fall before or inside
 * the arguments of the last one, and no arguments are `{}` to a tool: it would run with what nobody wrote. So the last call of a
 * cut answer counts only with a whole object that is not empty. Some servers do not say that they cut. Of an answer that a filter
 * has ended no call is made.
 */
export function wholeCalls(
  calls: readonly ToolCall[],
  { stop, usage }: { stop: string; usage: Usage },
  maxOutputTokens: number,
): FinishedCalls {
  if (stop === 'refusal') return { calls: [], isCut: false };
  const isFull = usage.output - usage.reasoning >= maxOutputTokens;
  if (calls.length === 0 || (stop !== 'length' && !isFull)) return { calls: [...calls], isCut: false };
  const whole = calls.filter(({ args }, index) => {
    const parsed = parseArgs(args);
    return parsed !== null && (index < calls.length - 1 || Object.keys(parsed).length > 0);
  });
  const broken = calls.findLast((call) => !whole.includes(call))?.name;
  return { calls: whole, isCut: broken !== undefined, ...(broken !== undefined && { broken }) };
}
