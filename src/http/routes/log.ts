import * as z from 'zod';
import { isGranted } from '../../library/access/index.ts';
import { isThreadOf } from '../../base/thread-id.ts';
import { TroupeError } from '../../base/errors.ts';
import { ConversationId, type Event, type LiveNote, type Note } from '../../events/index.ts';
import { unknownConversation } from '../permissions.ts';
import {
  eventJson,
  followAll,
  followConversation,
  type FollowOptions,
  type Frame,
  headOf,
} from '../../library/asking/follow.ts';
import { openStream, textStream } from '../open-stream.ts';
import { defineRoute } from '../route.ts';
import { parseInput, Seq, AttachmentIndex, Flag, StoredSeq } from '../schemas.ts';
import type { ImportReport } from '../../library/import/index.ts';
import type { Deleted, ErasureReceipt } from '../../library/troupe.ts';
import { typed } from '../answers.ts';
import { chunksOf, readJson } from '../read-json.ts';

const RECONNECT_MS = 1_000;

const ErasureBody = z.strictObject({
  person: z.string().min(1).max(128).optional(),
  conversation: z.string().optional(),
  tenant: z.string().optional(),
});

const StreamQuery = z.object({
  conversation: ConversationId.optional(),
  after: Seq.optional(),
  /** Without `after`: begins with this many of the newest events. */
  newest: Seq.optional(),
  /** Reports only that something has happened in threads of this conversation. */
  threadsOf: ConversationId.optional(),
});

/**
 * Server-sent events. `event` frames can be resumed. `stream` frames with a reply as it is written, `activity` frames with
 * tool calls and reasoning, and `state` frames with transitions of the agents' machines cannot.
 */
export const streamRoute = defineRoute({
  method: 'GET',
  path: '/api/events',
  scopes: ['read'],
  id: 'streamEvents',
  summary:
    'Server-sent events of one conversation, from `after` or the `newest` so many events on, resumable by Last-Event-ID, or live events of all. `event`: a stored event; `stream`: part of a reply as it is written; `activity`: what else happens in a running turn (reasoning, arguments of calls as they are written, the start, progress and result of calls, and what is void again), by `kind`; `state`: a transition of an agent; `gap`: events of the stream over all conversations were dropped; `reset`: the conversation has another log than before (it was deleted and begun anew, or a backup was restored), whose events follow from the first on. With `threadsOf` only `thread`: the conversation, seq and kind of each new event in a thread of that conversation',
  query: StreamQuery,
  answerType: 'text/event-stream',
  handle({ context, caller, query }, { clock, signal }) {
    const lastId = context.req.header('last-event-id');
    const { conversation, newest, threadsOf } = query;
    const { after } = lastId ? parseInput(StreamQuery, { after: lastId }, 'the query') : query;
    if (conversation === undefined && (after ?? newest) !== undefined) throw notResumable();
    if (conversation !== undefined && threadsOf !== undefined) throw eitherOr();
    const { principal, troupe, reading } = caller;
    // A conversation that does not exist yet may be followed; one that was not granted may not.
    const named = conversation ?? threadsOf;
    if (named !== undefined && !isGranted(principal, named)) throw unknownConversation(named);

    async function* followOne(of: ConversationId, options: FollowOptions): AsyncGenerator<Frame, void> {
      const from =
        after ?? (newest === undefined ? 0 : (await headOf(troupe.events(of, { limit: 1 }))) - newest);
      yield* followConversation(of, Math.max(0, from), options);
    }

    function write(ends: AbortSignal): AsyncGenerator<string, void> {
      const options = { troupe, clock, signal: ends };
      const live =
        conversation === undefined ? followSome(threadsOf, options) : followOne(conversation, options);
      const frames = reading ? reading.paced(live, ends) : live;
      if (threadsOf !== undefined) return asNews(frames);
      return asText(frames, (event) => (conversation === undefined ? '' : `id: ${event.seq}\n`));
    }

    return openStream(context, write, { caller, clock, signal });
  },
});

function notResumable(): TroupeError {
  const message = 'only the stream of one conversation can be resumed: name it with ?conversation=';
  return new TroupeError('event_invalid', message, { path: 'conversation' });
}

function eitherOr(): TroupeError {
  const message = 'name the conversation or the one whose threads are followed, not both';
  return new TroupeError('event_invalid', message, { path: 'threadsOf' });
}

function followSome(
  threadsOf: ConversationId | undefined,
  options: FollowOptions,
): AsyncGenerator<Frame, void> {
  if (threadsOf === undefined) return followAll(options);
  const only = (note: Note) => note.type === 'event' && isThreadOf(note.event.conversation, threadsOf);
  return followAll({ ...options, only });
}

async function* asNews(frames: AsyncGenerator<Frame, void>): AsyncGenerator<string, void> {
  yield `retry: ${RECONNECT_MS}\n\n`;
  for await (const frame of frames) {
    if (frame.type !== 'event') yield frameText(frame, () => '');
    else {
      const { conversation, seq, kind } = frame.event;
      yield `event: thread\ndata: ${JSON.stringify({ conversation, seq, kind })}\n\n`;
    }
  }
}

async function* asText(
  frames: AsyncGenerator<Frame, void>,
  idOf: (event: Event) => string,
): AsyncGenerator<string, void> {
  yield `retry: ${RECONNECT_MS}\n\n`;
  for await (const frame of frames) yield frameText(frame, idOf);
}

function frameText(frame: Frame, idOf: (event: Event) => string): string {
  if ('agent' in frame) return noteText(frame);
  switch (frame.type) {
    case 'event':
      return `event: event\n${idOf(frame.event)}data: ${eventJson(frame.event)}\n\n`;
    case 'gap':
      return 'event: gap\ndata: {}\n\n';
    // The empty id replaces the one with which the reader would reconnect.
    case 'reset':
      return `event: reset\nid: 0\ndata: ${JSON.stringify({ conversation: frame.conversation })}\n\n`;
    case 'heartbeat':
      return ': still here\n\n';
  }
}

/** A note without its tenant. */
function noteText(told: LiveNote): string {
  const { type, tenant: _, ...note } = told;
  if (type === 'text') return `event: stream\ndata: ${JSON.stringify(note)}\n\n`;
  if (type === 'state') return `event: state\ndata: ${JSON.stringify(note)}\n\n`;
  return `event: activity\ndata: ${JSON.stringify({ kind: type, ...note })}\n\n`;
}

export const transferRoutes = [
  defineRoute({
    method: 'DELETE',
    path: '/api/conversations/{conversation}',
    scopes: ['operate'],
    id: 'deleteConversation',
    summary:
      "Delete a conversation with its threads. `exported` is the number of exported events, or 'none'. Answers 409 if that number is outdated or an agent is busy",
    query: z.object({ exported: z.union([z.literal('none'), Seq]) }),
    answer: typed<Deleted>(),
    handle: ({ troupe, params, query }) => troupe.delete(params.conversation, query),
  }),
  defineRoute({
    method: 'POST',
    path: '/api/erasures',
    scopes: ['erase'],
    id: 'erase',
    summary:
      'Erase for good what a `person` has said in the tenant and what agents made of it, a `conversation` with its threads and files, or all of the `tenant`, named to confirm it; answers with the receipt when it is done. Of a person marked holes stay, and the integrity of the logs can still be checked. Answers 409 if an agent is at work there. Safe to repeat',
    body: ErasureBody,
    example: { person: 'ana' },
    answer: typed<ErasureReceipt>(),
    async handle({ context, caller: { principal, troupe } }) {
      const subject = parseInput(ErasureBody, await readJson(context), 'the body');
      return troupe.erase({ ...subject, ...(principal.author && { by: principal.author }) });
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{conversation}/export',
    scopes: ['read'],
    id: 'exportConversation',
    summary:
      'Export a conversation as JSON lines, followed by the threads of its tasks unless `threads` is false. `html` gives a readable page',
    query: z.object({
      /** False: without the threads of its tasks. */
      threads: Flag.default(true),
      /** `html`: one page for reading, without threads. */
      format: z.enum(['jsonl', 'html']).default('jsonl'),
      /** `kept`: includes text that looks like keys, tokens, card numbers and passwords. */
      secrets: z.enum(['hidden', 'kept']).default('hidden'),
    }),
    answerType: 'application/x-ndjson',
    also: { 200: { type: 'text/html' } },
    headers: ['content-disposition'],
    async handle({ context, params, caller, query }) {
      const conversation = params.conversation;
      const { troupe, reading } = caller;
      const isPage = query.format === 'html';
      const source = troupe.export(conversation, query);
      const lines = reading ? reading.paced(source) : source;
      // The first line is read before the status is sent, so that an unknown conversation gives 404.
      const first = await lines.next();
      const body = first.done ? '' : textStream(prepended(first.value, lines));
      return context.body(body, 200, {
        'content-type': isPage ? 'text/html; charset=utf-8' : 'application/x-ndjson; charset=utf-8',
        'content-disposition': attachment(`${conversation}.${isPage ? 'html' : 'jsonl'}`),
        // The page has our own origin, so this policy makes it as powerless as a local file.
        ...(isPage && {
          'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
        }),
      });
    },
  }),
  defineRoute({
    method: 'GET',
    path: '/api/conversations/{conversation}/attachment',
    scopes: ['read'],
    id: 'readAttachment',
    summary: 'The bytes of an attachment: the one at `index` (default 0) of the message at `seq`',
    query: z.object({ index: AttachmentIndex, seq: StoredSeq }),
    answerType: 'application/octet-stream',
    headers: ['content-disposition'],
    async handle({ context, troupe, params, query: { seq, index } }) {
      const { data, name } = await troupe.attachment(params.conversation, seq, index);
      // Never with the media type that its sender named: it could run scripts on our own origin.
      return context.body(new Uint8Array(data), 200, {
        'content-type': 'application/octet-stream',
        'content-disposition': attachment(name ?? `${seq}-${index}`),
        'x-content-type-options': 'nosniff',
        'cache-control': 'private, no-cache',
      });
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/api/import',
    scopes: ['write'],
    id: 'importTranscript',
    summary: 'Import a transcript: the body is the file',
    query: z.object({
      conversation: ConversationId.optional(),
      agent: z.string().min(1).optional(),
      format: z.string().min(1).optional(),
      file: z.string().min(1).max(255).optional(),
    }),
    bodyType: 'application/octet-stream',
    example: '[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day."}]',
    status: 201,
    answer: typed<ImportReport & { conversation: string | null }>(),
    async handle({ context, troupe, query: { file, ...query } }) {
      const report = await troupe.import(chunksOf(context.req.raw), { ...query, fileName: file });
      return { conversation: report.conversations[0] ?? null, ...report };
    },
  }),
] as const;

/** Colons are the only characters of a conversation id that are invalid in file names. */
function attachment(name: string): string {
  return `attachment; filename="${name.replace(/[^\w.@-]/g, '_')}"`;
}

async function* prepended(first: string, rest: AsyncGenerator<string>): AsyncGenerator<string, void> {
  yield first;
  yield* rest;
}
