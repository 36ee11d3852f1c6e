import { TroupeError } from '../errors.ts';
import { Refusal } from './refusal.ts';

export const MAX_BODY_BYTES = 1_048_576;
export const MAX_JSON_DEPTH = 64;

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i;

/** The body as a value, each limit checked before the work it limits. */
export async function readJson(request: Request): Promise<unknown> {
  const type = request.headers.get('content-type') ?? '';
  if (!JSON_TYPE.test(type)) {
    const message = `the body must be JSON, with content-type application/json, not "${type}"`;
    throw new Refusal(415, 'content_type_refused', message, { type });
  }
  const encoding = request.headers.get('content-encoding') ?? 'identity';
  if (encoding !== 'identity') {
    throw new Refusal(415, 'content_type_refused', 'compressed bodies are not taken', { encoding });
  }
  const text = decode(await readBytes(request));
  if (isDeeperThan(text, MAX_JSON_DEPTH)) {
    const message = `the body is nested deeper than ${MAX_JSON_DEPTH} levels`;
    throw new TroupeError('event_invalid', message, { path: '', limit: MAX_JSON_DEPTH });
  }
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError('event_invalid', `the body is not JSON: ${reason}`, { path: '' }, { cause });
  }
}

async function readBytes(request: Request): Promise<Uint8Array> {
  if (Number(request.headers.get('content-length') ?? 0) > MAX_BODY_BYTES) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += (chunk as Uint8Array).byteLength;
    if (size > MAX_BODY_BYTES) throw tooLarge();
    chunks.push(chunk as Uint8Array);
  }
  return Buffer.concat(chunks);
}

function tooLarge(): TroupeError {
  const message = `the body is larger than ${MAX_BODY_BYTES} bytes; store large content elsewhere and send its address`;
  return new TroupeError('event_too_large', message, { limit: MAX_BODY_BYTES });
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new TroupeError('event_invalid', 'the body is not UTF-8', { path: '' }, { cause });
  }
}

/** Counts brackets outside of strings; whether the text is JSON at all is not asked. */
export function isDeeperThan(text: string, limit: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '"') at = endOfString(text, at);
    else if (char === '}' || char === ']') depth -= 1;
    else if ((char === '{' || char === '[') && ++depth > limit) return true;
  }
  return false;
}

function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at;
}
