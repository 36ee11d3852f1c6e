import { hash } from 'node:crypto';
import type { EventDraft } from '../events/index.ts';

/**
 * Tells a repeated append from a conflicting one. The id is left out, because it is what the two share; keys are
 * sorted, because their order is no part of what was said.
 */
export function payloadHash(draft: EventDraft): string {
  const { id: _, ...payload } = draft;
  return hash('sha256', canonicalJson(payload), 'base64url');
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
