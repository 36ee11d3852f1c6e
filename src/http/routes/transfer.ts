import * as z from 'zod';
import { ConversationId } from '../../events/index.ts';
import type { ImportReport } from '../../library/import/index.ts';
import type { Deleted } from '../../library/troupe.ts';
import { typed } from '../answers.ts';
import { exportHtml } from '../page/export-html.ts';
import { chunksOf } from '../read-json.ts';
import { defineRoute } from '../route.ts';
import { AttachmentIndex, Flag, Seq, StoredSeq } from '../schemas.ts';
import { textStream } from '../text-stream.ts';

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
    method: 'GET',
    path: '/api/conversations/{conversation}/export',
    scopes: ['read'],
    id: 'exportConversation',
    summary:
      'Export a conversation as JSON lines; `threads` appends its delegated conversations. `html` gives a readable page',
    query: z.object({
      /** Adds the conversations of delegated tasks. */
      threads: Flag.optional(),
      /** `html`: one page to read, without threads. */
      format: z.enum(['jsonl', 'html']).default('jsonl'),
    }),
    answerType: 'application/x-ndjson',
    also: { 200: { type: 'text/html' } },
    headers: ['content-disposition'],
    async handle({ context, params, caller, query: { format, ...options } }, { bookOf }) {
      const conversation = params.conversation;
      const { troupe, reading } = caller;
      const isPage = format === 'html';
      const source = isPage
        ? exportHtml(troupe, conversation, bookOf(context))
        : troupe.export(conversation, options);
      const lines = reading ? reading.paced(source) : source;
      // The first line is read before the status is sent, so that an unknown conversation is a 404.
      const first = await lines.next();
      const body = first.done ? '' : textStream(prepended(first.value, lines));
      return context.body(body, 200, {
        'content-type': isPage ? 'text/html; charset=utf-8' : 'application/x-ndjson; charset=utf-8',
        'content-disposition': attachment(`${conversation}.${isPage ? 'html' : 'jsonl'}`),
        // The page runs on our own origin, so the policy makes it as powerless as a local file.
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
      // Never under the type that its sender has named: it would run on our own origin.
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
      /** Name of the file. */
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

/** Colons are the only characters of a conversation id that are invalid in a file name. */
function attachment(name: string): string {
  return `attachment; filename="${name.replace(/[^\w.@-]/g, '_')}"`;
}

async function* prepended(first: string, rest: AsyncGenerator<string>): AsyncGenerator<string, void> {
  yield first;
  yield* rest;
}
