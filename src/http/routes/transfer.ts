import type { Hono } from 'hono';
import { callerOf, troupeOf } from '../access/caller.ts';
import type { BookOf } from '../access/projection-books.ts';
import { exportHtml } from '../export-html.ts';
import { chunksOf } from '../read-json.ts';
import { DeleteQuery, ExportQuery, ImportQuery, parseInput } from '../schemas.ts';
import { textStream } from '../text-stream.ts';

export function addTransferRoutes(app: Hono, bookOf: BookOf): void {
  app.post('/api/import', async (context) => {
    const { file, ...query } = parseInput(ImportQuery, context.req.query(), 'the query');
    const report = await troupeOf(context).import(chunksOf(context.req.raw), { ...query, fileName: file });
    return context.json({ conversation: report.conversations[0] ?? null, ...report }, 201);
  });

  app.get('/api/conversations/:c/export', async (context) => {
    const { format, ...options } = parseInput(ExportQuery, context.req.query(), 'the query');
    const conversation = context.req.param('c');
    const { troupe, reading } = callerOf(context);
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
      // Opened on our own origin it is as powerless as in a file.
      ...(isPage && { 'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox" }),
    });
  });

  app.delete('/api/conversations/:c', async (context) => {
    const options = parseInput(DeleteQuery, context.req.query(), 'the query');
    return context.json(await troupeOf(context).delete(context.req.param('c'), options));
  });
}

/** A conversation's id has no other letters than a file may have, but for the colon. */
function attachment(name: string): string {
  return `attachment; filename="${name.replace(/[^\w.@-]/g, '_')}"`;
}

async function* prepended(first: string, rest: AsyncGenerator<string>): AsyncGenerator<string, void> {
  yield first;
  yield* rest;
}
