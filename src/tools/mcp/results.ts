import * as z from 'zod';

/** Accepts every object: Troupe reads results itself. */
export const AnyResult = z.looseObject({});

/** Limit of the nesting of a message: what is recursive, as `JSON.stringify`, would overflow the stack. */
const MAX_LEVELS = 200;

export function isTooDeep(value: unknown): boolean {
  return isDeeper(value, MAX_LEVELS);
}

/** Goes level by level: recursion into a deep value would overflow the stack. */
export function isDeeper(value: unknown, levels: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; depth <= levels; depth += 1) {
    level = level.flatMap((each) => (typeof each === 'object' && each !== null ? Object.values(each) : []));
    if (level.length === 0) return false;
  }
  return true;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Its fields that are there: many servers write null for what they do not have. */
export function withoutNulls(given: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
}

export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The items of a list. Servers give null for none, and one item without a list around it. */
export function itemsOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return value === null || value === undefined ? [] : [value];
}

/** Where a list goes on; undefined at its end, which servers also mark with an empty text or null. */
export function cursorOf(value: unknown): string | undefined {
  return typeof value === 'number' ? String(value) : textOf(value);
}

/** JSON with the digits of its integers, or words for what is nested too deeply. */
export function jsonText(value: unknown): string {
  return isTooDeep(value)
    ? `[not shown: it has more than ${MAX_LEVELS} levels]`
    : (JSON.stringify(value) ?? '');
}
