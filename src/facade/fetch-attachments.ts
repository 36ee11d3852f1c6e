import { TroupeError } from '../errors.ts';
import { MAX_ATTACHED_BYTES, MAX_MESSAGE_ATTACHMENTS } from '../events/index.ts';
import type { SafeFetch } from '../net/safe-fetch.ts';
import { MAX_FILE_BYTES } from './read-attachments.ts';
import type { AttachmentByAddress, NewAttachment } from '../troupe.ts';

/** All attachments of one message together: its sender waits for them. */
const TIMEOUT_MS = 60_000;
const MAX_NAME = 255;

/**
 * Puts in place of each address what is there. `fetch` is null where the definition has no `fetch` settings: then nothing
 * is fetched for anybody. Throws what `readAttachments` throws, and `address_refused` and `address_unreachable`, with
 * `data.path`. One after the other, so that a message holds no more in memory than it may have.
 */
export async function fetchAttachments(
  given: readonly (NewAttachment | AttachmentByAddress)[],
  fetch: SafeFetch | null,
): Promise<readonly NewAttachment[]> {
  // How many there may be is told by who reads them; nothing is fetched for too many.
  const isTooMany = given.length > MAX_MESSAGE_ATTACHMENTS;
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const attachments: NewAttachment[] = [];
  let room = MAX_ATTACHED_BYTES;
  for (const [index, each] of given.entries()) {
    if (!('url' in each)) {
      attachments.push(each);
      continue;
    }
    const path = `attachments.${index}`;
    if (!fetch) {
      const message = `${path}.url: nothing is fetched here; name the hosts in \`fetch: { allow }\` of the agents file, or send \`data\``;
      throw new TroupeError('event_invalid', message, { path: `${path}.url` });
    }
    const maxBytes = Math.min(MAX_FILE_BYTES, room);
    const fetched: NewAttachment = isTooMany
      ? { mediaType: 'text/plain', data: '' }
      : await read(each, path, { fetch, signal, maxBytes });
    room -= fetched.data.length;
    attachments.push(fetched);
  }
  return attachments;
}

async function read(
  { url, name = nameIn(url), mediaType }: AttachmentByAddress,
  path: string,
  { fetch, signal, maxBytes }: { fetch: SafeFetch; signal: AbortSignal; maxBytes: number },
): Promise<NewAttachment> {
  const { status, headers, body, isCut } = await fetch(url, { signal, maxBytes }).catch((thrown: unknown) => {
    throw thrown instanceof TroupeError ? atPath(thrown, path) : thrown;
  });
  if (status !== 200) {
    const message = `${path}.url: its server answered ${status}, not 200`;
    throw new TroupeError('event_invalid', message, { path: `${path}.url`, status });
  }
  if (isCut) {
    const message = `${path}.url: it has more than ${maxBytes} bytes, which is all there is room for`;
    throw new TroupeError('event_too_large', message, { path, limit: maxBytes });
  }
  const said = mediaType ?? headers['content-type'] ?? 'application/octet-stream';
  return { ...(name !== undefined && { name }), mediaType: said, data: body };
}

function atPath({ code, message, data }: TroupeError, path: string): TroupeError {
  return new TroupeError(code, `${path}.url: ${message}`, { ...data, path: `${path}.url` });
}

function nameIn(url: string): string | undefined {
  const last = URL.parse(url)?.pathname.split('/').pop() ?? '';
  try {
    return decodeURIComponent(last).slice(0, MAX_NAME).toWellFormed() || undefined;
  } catch {
    // Not every % stands for a character.
    return last.slice(0, MAX_NAME) || undefined;
  }
}
