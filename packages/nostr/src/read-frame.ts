import type { Refused } from './relay-faults.ts';

/** A relay's frame (NIP-01, NIP-42). Its content is not checked. */
export type Frame =
  | { type: 'EVENT'; sub: string; event: unknown }
  | { type: 'EOSE'; sub: string }
  | { type: 'CLOSED'; sub: string; reason: string }
  | { type: 'OK'; id: string; accepted: boolean; reason: string }
  | { type: 'NOTICE'; text: string }
  | { type: 'AUTH'; challenge: string }
  | { type: 'refused'; reason: Refused };

/** The deepest valid frame is `["EVENT",sub,{"tags":[[`. */
const MAX_DEPTH = 4;
/** Bytes of a frame in addition to its event. */
const ENVELOPE_BYTES = 512;
const MAX_TEXT = 500;

/** Checks size and depth before it parses the message. */
export function readFrame(bytes: Buffer, maxEventBytes: number): Frame {
  if (bytes.byteLength > maxEventBytes + ENVELOPE_BYTES) return { type: 'refused', reason: 'size' };
  if (isTooDeep(bytes)) return { type: 'refused', reason: 'depth' };
  let parsed: unknown;
  try {
    parsed = JSON.parse(bytes.toString('utf8'));
  } catch {
    return { type: 'refused', reason: 'json' };
  }
  return (Array.isArray(parsed) && frameOf(parsed)) || { type: 'refused', reason: 'frame' };
}

function frameOf([type, first, second, third]: unknown[]): Frame | null {
  if (typeof first !== 'string') return null;
  switch (type) {
    case 'EVENT':
      return { type, sub: first, event: second };
    case 'EOSE':
      return { type, sub: first };
    case 'CLOSED':
      return { type, sub: first, reason: textOf(second) };
    case 'OK':
      return typeof second === 'boolean'
        ? { type, id: first, accepted: second, reason: textOf(third) }
        : null;
    case 'NOTICE':
      return { type, text: first.slice(0, MAX_TEXT) };
    case 'AUTH':
      return { type, challenge: first.slice(0, MAX_TEXT) };
    default:
      return null;
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, MAX_TEXT) : '';
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function isTooDeep(bytes: Buffer): boolean {
  let depth = 0;
  let isText = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (isText) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isText = false;
    } else if (byte === QUOTE) isText = true;
    else if (byte === 0x5b || byte === 0x7b) {
      depth += 1;
      if (depth > MAX_DEPTH) return true;
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
  }
  return false;
}
