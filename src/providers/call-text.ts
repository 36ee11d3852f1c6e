import { createHash } from 'node:crypto';
import { type ImageRef, parseExact, type ToolCall, type Usage } from '../events/index.ts';
import type { ModelRequest } from './provider.ts';

/** An id for a call that came without one. The same step gets the same id when it is asked again. */
export function mintCallId(trace: ModelRequest['trace'], index: number): string {
  return `call_${trace.turn}_${trace.step}_${index}`.replace(/[^A-Za-z0-9_-]/g, '_');
}

/** The id itself if the vendor accepts it, else a digest. A call and its result get the same digest. */
export function fitCallId(id: string, accepted: RegExp): string {
  if (accepted.test(id)) return id;
  return `call_${createHash('sha256').update(id).digest('hex').slice(0, 32)}`;
}

/** Replaces characters that vendors refuse: models invent such tool names, and the log sends them back in every later request. */
export function fitToolName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'unknown';
}

/** Arguments for vendors that take them as text. Invalid JSON is replaced: some servers refuse the whole request over it. */
export function fitArgs(args: string): string {
  return args !== '' && parseArgs(args) ? args.toWellFormed() : '{}';
}

/** A cache key for a vendor: a digest, because the field takes 64 characters and the ids are private. */
export function fitCacheKey(cacheKey: string): string {
  return createHash('sha256').update(cacheKey).digest('base64url');
}

/** Most levels of JSON strings that are decoded to find the arguments. */
const MOST_ENCODED = 3;
const EMPTY_FIRST = /^\{\s*\}\s*(?=\{)/;

/**
 * The text of arguments, repaired where servers send something else: an object, null, JSON encoded twice, an empty object
 * before the real one, the same object twice in a row. Any other text stays as it is, and the tool refuses it with a reason.
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

/** The object that this JSON string encodes, as text; '' if there is none. */
function decoded(text: string, depth: number): string {
  try {
    const args = argsText(JSON.parse(text), depth + 1);
    return parseArgs(args) ? args : '';
  } catch {
    return ''; // Not JSON: the text stays as it is.
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
    return null; // Not JSON: the caller decides.
  }
}

/** The images that a message names, with their bytes in base64. Images that the request lacks are left out. */
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
  calls: ToolCall[];
  /** Name of a tool whose call did not arrive whole. */
  broken?: string | undefined;
  /** The answer was cut, whatever reason the vendor gave for its end. */
  isCut: boolean;
}

/**
 * The calls of a finished answer that arrived whole. The limit of output tokens may cut the last call before or inside its
 * arguments. A tool reads empty arguments as `{}` and would run with arguments that the model never wrote, so the last call of
 * a cut answer counts only if its arguments are an object that is not empty. An answer counts as cut at that limit even where
 * the server does not say so. A refused answer has no calls.
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
