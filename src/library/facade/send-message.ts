import { addressees, receiveMessage, receiveNotice } from '../../actors/conversations/messages.ts';
import { isTrusted, type PendingCount } from '../../actors/actor/engine-deps.ts';
import type { AgentRegistry } from '../../actors/actor/agent-runtime.ts';
import { isOurs } from '../../actors/log/conversation-log.ts';
import type { Redaction } from '../../events/redaction.ts';
import { askedReply } from '../../actors/turn/check-reply.ts';
import { answerByReply } from '../../actors/tasks/task-commands.ts';
import { TroupeError } from '../../base/errors.ts';
import {
  type AgentId,
  AskedReply,
  type Attachment,
  type Author,
  type EventDraft,
  type EventDraftOf,
  type EventId,
  isRuntimeId,
  parseGiven,
  IMAGE_TYPES,
  type ImageType,
  MAX_ATTACHED_BYTES,
  MAX_MESSAGE_ATTACHMENTS,
  MediaType,
  type Event,
} from '../../events/index.ts';
import type { Appended, ConversationKey, Store } from '../../store/store.ts';
import type { NewMessage, AttachmentByAddress, NewAttachment, ReadAttachment } from '../troupe.ts';
import { conversationId, invalid, mintId, parseDraft } from './parse-input.ts';
import type { PendingGuard, TenantContext } from './tenant-context.ts';
import { hash } from 'node:crypto';
import { readImageHeader } from './image-header.ts';
import type { SafeFetch } from '../../base/net/safe-fetch.ts';

/** Stores a message of a client, with its attachments, and wakes the agents that it addresses. */
export async function sendMessage(
  { parts, conversations, tenant }: TenantContext,
  conversation: string,
  message: NewMessage,
): Promise<Appended> {
  const { deps, trust = null } = parts;
  const { author } = message;
  const to = addressees(deps.agents, message, null);
  const { attachments, bodies } = message.attachments?.length
    ? await readAttached(parts, message.attachments, author)
    : NOTHING_ATTACHED;
  if (message.includeInContext === false) refuseRecipients(message);
  const { readable } = parts.integrations;
  const content = readable ? await readable(message.content, nameFrom(deps.agents)) : message.content;
  const draft = draftOf({ ...message, content }, to, attachments, deps.redaction);
  const log = { tenant, conversation: conversationId(conversation) };
  const echo = isRuntimeId(draft.id) ? await findEcho(deps.store, log, draft) : null;
  if (echo) return echo;
  await parts.tenants.add(tenant);
  const untrusted = message.untrusted === true;
  // Stored before the event, so that its readers find them.
  const putBodies = async () => {
    for (const [hash, data] of bodies) await deps.store.putBody(tenant, hash, data, deps.clock.now());
  };
  if (draft.kind === 'notice') return receiveNotice(conversations, log, draft, putBodies);
  const received = { log, message: draft, untrusted, mode: message.mode };
  const receive = () =>
    receiveMessage(conversations, received, async (addressed) => {
      if (mayBeRefused(deps, addressed)) await deps.features.steering?.refuseBusy(deps, log, addressed);
      await parts.pending?.(log, addressed);
      if (bodies.size > 0) await putBodies();
    });
  const appended = await (message.forTools === undefined
    ? receive()
    : withForTools(parts, { ...log, id: draft.id }, message, receive));
  const { event } = appended;
  const isReply = event.kind === 'message' && event.replyTo !== undefined;
  if (isReply && isTrusted(trust, author) && !untrusted) await answerByReply({ ...deps, trust }, log, event);
  return appended;
}

async function readAttached(
  { deps, fetch }: TenantContext['parts'],
  given: NonNullable<NewMessage['attachments']>,
  author: Author,
): Promise<ReadAttachments> {
  const fetched = await fetchAttachments(given, fetch ?? null);
  return readAttachments(redactAttachments(fetched, author, deps.redaction));
}

function mayBeRefused({ agents }: { agents: AgentRegistry }, { to, whileBusy }: EventDraft): boolean {
  for (const agent of to) if ((whileBusy ?? agents.get(agent)?.whileBusy) === 'reject') return true;
  return false;
}

/**
 * Kept before the message is stored, because an agent may begin at once. Not kept if it is stored with the message:
 * tools then read the same value in every process.
 */
async function withForTools(
  { deps }: TenantContext['parts'],
  place: ConversationKey & { id: EventId },
  { forTools, storeForTools = false }: NewMessage,
  send: () => Promise<Appended>,
): Promise<Appended> {
  if (forTools === undefined || forTools === null || storeForTools) return send();
  const takeBack = deps.forTools?.set(place, forTools);
  try {
    return await send();
  } catch (error) {
    takeBack?.();
    throw error;
  }
}

/** The data for tools that is stored with the message. Throws `event_invalid` if it is not JSON. */
function storedForTools(
  { forTools, storeForTools, author }: NewMessage,
  redaction: Redaction | undefined,
): { forTools?: unknown } {
  if (storeForTools !== true || forTools === undefined || forTools === null) return {};
  let data: unknown;
  try {
    data = JSON.parse(JSON.stringify(forTools));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `forTools: to be stored it must be JSON: ${why}; leave storeForTools out to keep it in this process`;
    throw new TroupeError('event_invalid', message, { path: 'forTools' }, { cause });
  }
  const where = { kind: 'message', author } as const;
  return { forTools: redaction ? redaction.body({ data }, where).data : data };
}

/** Most characters of a schema, which is stored with the message and with the turn. */
const MOST_SCHEMA = 65_536;

/** Throws `event_invalid` for a schema that cannot check answers. */
function askedFor(reply: NonNullable<NewMessage['reply']>): { reply: AskedReply } {
  const refuse = (why: string, cause?: unknown) => {
    const message = `reply: the schema cannot be used: ${why}`;
    return new TroupeError('event_invalid', message, { path: 'reply.schema' }, { cause });
  };
  const asked = parseGiven(AskedReply, reply, 'reply', 'event_invalid');
  if (JSON.stringify(asked.schema).length > MOST_SCHEMA)
    throw refuse(`it has more than ${MOST_SCHEMA} characters`);
  try {
    askedReply(asked);
  } catch (cause) {
    throw refuse(cause instanceof Error ? cause.message : String(cause), cause);
  }
  return { reply: asked };
}

function nameFrom(agents: AgentRegistry): (pubkey: string) => string | null {
  return (pubkey) => [...agents.values()].find((agent) => agent.pubkey === pubkey)?.profile.name ?? null;
}

type Spoken = EventDraftOf<'message'> | EventDraftOf<'notice'>;

/** Throws `event_invalid` for a notice with fields that only make sense for agents. */
function refuseRecipients({ to = [], whileBusy, session, mode, forTools = null }: NewMessage): void {
  const given = {
    to: to.length > 0,
    whileBusy: whileBusy !== undefined,
    session: session !== undefined,
    mode: mode !== undefined,
    forTools: forTools !== null,
  };
  const field = Object.entries(given).find(([, isGiven]) => isGiven)?.[0];
  if (field === undefined) return;
  const message = `${field}: a message with includeInContext: false reaches no agent; leave ${field} out`;
  throw new TroupeError('event_invalid', message, { path: field });
}

function draftOf(
  message: NewMessage,
  to: readonly AgentId[],
  attachments: readonly Attachment[],
  redaction: Redaction | undefined,
): Spoken {
  const {
    id = mintId(),
    author,
    content,
    replyTo,
    whileBusy,
    context,
    channel = 'library',
    session,
  } = message;
  const draft = parseDraft({
    id,
    author,
    to,
    kind: message.includeInContext === false ? 'notice' : 'message',
    body: { content, ...(attachments.length > 0 && { attachments }) },
    ...(replyTo !== undefined && { replyTo }),
    ...(whileBusy !== undefined && { whileBusy }),
    context: {
      ...(context?.attachments && { attachments: context.attachments }),
      channel,
      ...(message.storeForTools === true && storedForTools(message, redaction)),
      ...(message.reply !== undefined && askedFor(message.reply)),
      ...(session && { session: { ...session, agent: addressed(session.agent, to) } }),
    },
  });
  return (redaction?.draft(draft) ?? draft) as Spoken;
}

/** The agent whose session a message names. Throws `event_invalid` if the message does not address it. */
function addressed(agent: string, to: readonly AgentId[]): AgentId {
  const found = to.find((each) => each === agent.replace(/^@/, ''));
  if (found) return found;
  const message = `session.agent: the message must address @${agent}, by its id`;
  throw new TroupeError('event_invalid', message, { path: 'session.agent' });
}

/**
 * Clients may not use ids of the runtime, except in two cases. A gateway that returns our own message gets the stored
 * event. Null: an earlier version let a client store an event with this id, so the message is treated as a retry.
 */
async function findEcho(
  store: Pick<Store, 'readById'>,
  log: ConversationKey,
  draft: Spoken,
): Promise<Appended | null> {
  const event = await store.readById(log, draft.id);
  const isSame =
    event?.kind === 'message' &&
    draft.kind === 'message' &&
    event.author.id === draft.author.id &&
    event.body.content === draft.body.content &&
    draft.body.attachments === undefined;
  if (isSame) return { kind: 'exists', event };
  if (event && isOurs(event, draft)) return null;
  const message = `id "${draft.id}" belongs to the runtime, as all ids with a ":": leave the id out or choose one without`;
  throw new TroupeError('event_conflict', message, { id: draft.id });
}

const RETRY_AFTER_MS = 1_000;

/** Keeps a tenant from filling the shared queue. A message that is already stored always passes. */
export function createPendingGuard({
  pending,
  store,
}: {
  pending: PendingCount;
  store: Pick<Store, 'readById'>;
}): PendingGuard {
  return async function refuseFlood(log, { id, to }) {
    if (to.length === 0) return;
    const { limit } = pending;
    const waiting = await pending.of(log.tenant);
    if (waiting < limit || (await store.readById(log, id)) !== null) return;
    const message = `${waiting} agents of this tenant wait for their turn: send the message again later, with the same id`;
    throw new TroupeError('tenant_busy', message, { waiting, limit, retryAfterMs: RETRY_AFTER_MS });
  };
}

export const MAX_FILE_BYTES = 5 * 1_024 * 1_024;
/** Vendors accept 5 MiB of base64. A larger image would be refused again with every later prompt. */
const MAX_IMAGE_BYTES = (MAX_FILE_BYTES * 3) / 4;
/** Longer texts are stored as files, because the text of an event is part of prompts. */
export const MAX_TEXT_BYTES = 64 * 1_024;
/** Anthropic refuses larger images. */
const MAX_SIDE_PIXELS = 8_000;

const TEXT_TYPE = /^(?:text\/.+|application\/json)$/;

/** The attachments of a message, and their bytes as base64 by hash, which are stored beside the log. */
interface ReadAttachments {
  attachments: Attachment[];
  bodies: Map<string, string>;
}

const NOTHING_ATTACHED: ReadAttachments = { attachments: [], bodies: new Map() };

/** Checks the attachments of a client. Throws `event_invalid` or `event_too_large` with `data.path`. */
export function readAttachments(given: readonly NewAttachment[]): ReadAttachments {
  if (given.length > MAX_MESSAGE_ATTACHMENTS) {
    const message = `attachments: at most ${MAX_MESSAGE_ATTACHMENTS}, got ${given.length}`;
    throw new TroupeError('event_invalid', message, { path: 'attachments' });
  }
  const bodies = new Map<string, string>();
  let total = 0;
  const attachments = given.map((each, index) => {
    const path = `attachments.${index}`;
    const { bytes, base64 } = bytesOf(each, path);
    total += bytes.length;
    if (total > MAX_ATTACHED_BYTES)
      throw tooLarge('attachments', 'all attachments together', MAX_ATTACHED_BYTES);
    const attachment = classify(each, bytes, path);
    if (attachment.type !== 'text') bodies.set(attachment.hash, base64);
    return attachment;
  });
  return { attachments, bodies };
}

function bytesOf({ data }: NewAttachment, path: string): { bytes: Buffer; base64: string } {
  const length = typeof data === 'string' ? Math.floor((data.length * 3) / 4) - 2 : data.length;
  if (length > MAX_FILE_BYTES) throw tooLarge(path, 'a file', MAX_FILE_BYTES);
  const bytes = typeof data === 'string' ? Buffer.from(data, 'base64') : Buffer.from(data);
  const base64 = bytes.toString('base64');
  // The decoder skips invalid characters, so the round trip differs.
  if (typeof data === 'string' && data !== base64)
    throw invalid(`${path}.data`, 'it is not base64 (the plain alphabet, padded, without line breaks)');
  if (bytes.length === 0) throw invalid(`${path}.data`, 'it is empty');
  if (bytes.length > MAX_FILE_BYTES) throw tooLarge(path, 'a file', MAX_FILE_BYTES);
  return { bytes, base64 };
}

function classify({ name, mediaType: declared }: NewAttachment, bytes: Buffer, path: string): Attachment {
  const { data: mediaType, error } = MediaType.safeParse(plainType(declared));
  if (mediaType === undefined)
    throw invalid(`${path}.mediaType`, error?.issues[0]?.message ?? 'it is invalid');
  const named = name === undefined ? {} : { name };
  const kept = { hash: hash('sha256', bytes, 'hex'), ...named, bytes: bytes.length };
  const image = imageOf(mediaType, bytes, path);
  if (image) return { type: 'image', mediaType: image, ...kept };
  const text = TEXT_TYPE.test(mediaType) && bytes.length <= MAX_TEXT_BYTES ? decode(bytes) : null;
  return text === null ? { type: 'file', mediaType, ...kept } : { type: 'text', mediaType, ...named, text };
}

/** The type in lower case and without parameters. */
function plainType(declared: string): string {
  const type = (declared.split(';')[0] ?? '').trim().toLowerCase();
  return type === 'image/jpg' ? 'image/jpeg' : type;
}

/** The image type of the bytes, checked against the declared type. Null: it is not shown as an image. */
function imageOf(mediaType: string, bytes: Buffer, path: string): ImageType | null {
  const isDeclared = IMAGE_TYPES.some((type) => type === mediaType);
  if (!isDeclared && mediaType !== 'application/octet-stream') return null;
  const header = readImageHeader(bytes);
  if (!header && !isDeclared) return null;
  if (header?.mediaType !== mediaType && isDeclared)
    throw invalid(
      `${path}.mediaType`,
      `it is ${mediaType}, but the bytes are ${header?.mediaType ?? 'no image'}`,
    );
  if (!header) return null;
  const { width, height } = header;
  if (Math.max(width, height) > MAX_SIDE_PIXELS)
    throw invalid(path, `the image is ${width} x ${height} pixels; at most ${MAX_SIDE_PIXELS} a side`);
  if (bytes.length > MAX_IMAGE_BYTES) throw tooLarge(path, 'an image', MAX_IMAGE_BYTES);
  return header.mediaType;
}

/** Null if the bytes are not UTF-8. */
function decode(bytes: Buffer, { ignoreBOM = false } = {}): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM }).decode(bytes);
  } catch {
    // Another encoding, or no text.
    return null;
  }
}

function tooLarge(path: string, what: string, limit: number): TroupeError {
  return new TroupeError('event_too_large', `${path}: ${what} may have at most ${limit} bytes`, {
    path,
    limit,
  });
}

const REDACTED_TYPE = /^(?:text\/|application\/(?:json|xml|yaml|x-yaml|x-ndjson)\b)/;

/** Redacts attached texts before anything is derived from them. Images and other files are not inspected. */
export function redactAttachments(
  attachments: readonly NewAttachment[],
  author: NewMessage['author'],
  redaction: Redaction | undefined,
): readonly NewAttachment[] {
  if (!redaction) return attachments;
  return attachments.map((each) => {
    const text = REDACTED_TYPE.test(plainType(each.mediaType)) ? redactableText(each) : null;
    if (text === null) return each;
    const made = redaction.text(text, { kind: 'message', author });
    return made === text ? each : { ...each, data: Buffer.from(made) };
  });
}

/** Null if the bytes are not UTF-8 or the base64 is invalid. Invalid base64 is refused later; other bytes are stored as files. */
function redactableText({ data }: NewAttachment): string | null {
  const bytes = typeof data === 'string' ? Buffer.from(data, 'base64') : Buffer.from(data);
  if (typeof data === 'string' && bytes.toString('base64') !== data) return null;
  return decode(bytes, { ignoreBOM: true });
}

/** Time limit for all attachments of a message: its sender waits for them. */
const TIMEOUT_MS = 60_000;
const MAX_NAME = 255;

/**
 * Fetches the attachments given by address, one after the other, so that at most the bytes of one message are in memory.
 * Without `fetch` settings `fetch` is null, and addresses are refused. Throws `event_invalid`, `event_too_large`,
 * `address_refused` and `address_unreachable`, with `data.path`.
 */
export async function fetchAttachments(
  given: readonly (NewAttachment | AttachmentByAddress)[],
  fetch: SafeFetch | null,
): Promise<readonly NewAttachment[]> {
  if (given.length === 0) return given as readonly NewAttachment[];
  // `readAttachments` refuses too many attachments, so none of them is fetched.
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
      const message = `${path}.url: fetching is off; name the allowed hosts in \`fetch: { allow }\` of the agents file, or send \`data\``;
      throw new TroupeError('event_invalid', message, { path: `${path}.url` });
    }
    const maxBytes = Math.min(MAX_FILE_BYTES, room);
    const fetched: NewAttachment = isTooMany
      ? { mediaType: 'text/plain', data: '' }
      : await readAddress(each, path, { fetch, signal, maxBytes });
    room -= fetched.data.length;
    attachments.push(fetched);
  }
  return attachments;
}

async function readAddress(
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
    const message = `${path}.url: it has more than ${maxBytes} bytes, the rest of the limit`;
    throw new TroupeError('event_too_large', message, { path, limit: maxBytes });
  }
  const declared = mediaType ?? headers['content-type'] ?? 'application/octet-stream';
  return { ...(name !== undefined && { name }), mediaType: declared, data: body };
}

function atPath({ code, message, data }: TroupeError, path: string): TroupeError {
  return new TroupeError(code, `${path}.url: ${message}`, { ...data, path: `${path}.url` });
}

function nameIn(url: string): string | undefined {
  const last = URL.parse(url)?.pathname.split('/').pop() ?? '';
  try {
    return decodeURIComponent(last).slice(0, MAX_NAME).toWellFormed() || undefined;
  } catch {
    // A stray % is not an escape.
    return last.slice(0, MAX_NAME) || undefined;
  }
}

/** The bytes of an attachment of a message or a task. Null: there is none with this index. */
export async function readAttachment(
  store: Pick<Store, 'readBody'>,
  event: Event,
  index: number,
): Promise<ReadAttachment | null> {
  const { kind, body, tenant } = event;
  const hasAny = kind === 'message' || kind === 'notice' || kind === 'delegation.opened';
  const given = hasAny ? body.attachments?.[index] : undefined;
  if (!given) return null;
  const { mediaType, name } = given;
  const head = { mediaType, ...(name !== undefined && { name }) };
  if (given.type === 'text') return { ...head, data: Buffer.from(given.text) };
  const base64 = await store.readBody(tenant, given.hash);
  return base64 === null ? null : { ...head, data: Buffer.from(base64, 'base64') };
}
