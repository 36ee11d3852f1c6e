import { hash } from 'node:crypto';
import type { NewEventRow } from './driver.ts';

/**
 * Tells a repeated append from a conflicting one: with equal hashes it is a repetition. With different ones it may
 * still be, written in another order of keys, which is no part of what was said; `isSamePayload` finds out.
 */
export function payloadHash(row: Omit<NewEventRow, 'hash'>): string {
  return hash('sha256', JSON.stringify([row.kind, row.to, row.turn]) + row.data, 'base64url');
}

/** The id is left out, because it is what the two share; so are the time and the size, which are not said but added. */
export function isSamePayload(a: NewEventRow, b: NewEventRow): boolean {
  if (a.hash === b.hash) return true;
  try {
    return canonicalPayload(a) === canonicalPayload(b);
  } catch {
    // What cannot be read is the same as nothing.
    return false;
  }
}

function canonicalPayload({ kind, to, turn, data }: NewEventRow): string {
  return canonicalJson([kind, to, turn, JSON.parse(data)]);
}

/** JSON with sorted keys. Built as text, so that a key such as `__proto__` is a key like any other. */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const record = value as Record<string, unknown>;
  let text = '';
  for (const key of Object.keys(record).sort()) {
    if (record[key] === undefined) continue;
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${canonicalJson(record[key])}`;
  }
  return `{${text}}`;
}
