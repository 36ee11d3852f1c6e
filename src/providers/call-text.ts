import { createHash } from 'node:crypto';
import { type ImageRef, parseExact } from '../events/index.ts';
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
