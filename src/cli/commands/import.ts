import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { TroupeError } from '../../base/errors.ts';
import type { ImportNote, ImportReport } from '../../library/import/index.ts';
import type { ImportRequest } from '../../library/troupe.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { count, number, paint, print, printable, printJson, table } from '../render/output.ts';

interface ImportFileOptions extends ClientOptions {
  conversation?: string;
  agent?: string;
  format?: string;
  dryRun?: boolean;
}

export async function importFile(file: string, options: ImportFileOptions): Promise<void> {
  const isStdin = file === '-';
  const size = isStdin ? null : await sizeOf(file);
  const source: AsyncIterable<Uint8Array> = isStdin ? process.stdin : createReadStream(file);
  const { conversation, agent, format, dryRun = false, json } = options;
  const fileName = isStdin ? undefined : basename(file);
  const request = { conversation, agent, format, fileName };
  const read = withProgress(source, size);
  const report = dryRun ? await rehearse(read, request) : await carryOut(read, request, options);
  if (json)
    printJson({ conversation: report.conversations[0] ?? null, ...(dryRun && { dryRun }), ...report });
  else print(renderReport(report, dryRun));
}

async function carryOut(
  read: AsyncIterable<Uint8Array>,
  request: ImportRequest,
  options: ImportFileOptions,
): Promise<ImportReport> {
  const client = await connect(options, { needs: 'names', mayCreate: true });
  try {
    return await client.import(read, request);
  } finally {
    await client.close();
  }
}

/** Reads the file and stores nothing. */
async function rehearse(read: AsyncIterable<Uint8Array>, request: ImportRequest): Promise<ImportReport> {
  const { importTranscript, newImportReport, readImportRequest } =
    await import('../../library/import/index.ts');
  const report = newImportReport();
  for await (const _ of importTranscript(read, readImportRequest(request), report));
  return report;
}

async function sizeOf(file: string): Promise<number> {
  try {
    const found = await stat(file);
    if (!found.isDirectory()) return found.size;
  } catch (cause) {
    const reason =
      (cause as NodeJS.ErrnoException).code === 'ENOENT' ? 'there is no such file' : String(cause);
    throw new TroupeError('import_invalid', `cannot read ${file}: ${reason}`, { file }, { cause });
  }
  throw new TroupeError('import_invalid', `cannot read ${file}: it is a directory`, { file });
}

/** Passes chunks through, and reports their number on stderr if that is a terminal. */
async function* withProgress(
  chunks: AsyncIterable<Uint8Array>,
  size: number | null,
): AsyncGenerator<Uint8Array> {
  const isWatched = process.stderr.isTTY === true;
  let read = 0;
  let shown = '';
  for await (const chunk of chunks) {
    read += chunk.length;
    const share = size ? `${Math.floor((read / size) * 100)} %` : `${Math.floor(read / 1_048_576)} MiB`;
    if (isWatched && share !== shown) process.stderr.write(`\rreading ${share}`);
    shown = share;
    yield chunk;
  }
  if (isWatched) process.stderr.write('\r\u001b[K');
}

function renderReport(
  { format, lines, events, kinds, conversations, repaired, skipped }: ImportReport,
  isDryRun: boolean,
): string {
  const where =
    conversations.length === 1
      ? `conversation ${paint('bold', conversations[0] ?? '')}`
      : `${count(conversations.length, 'conversation')}, ${conversations[0] ?? ''} to ${conversations.at(-1) ?? ''}`;
  const head = `${count(lines, 'record')} read as ${format}: ${count(events, 'event')} in ${where}${isDryRun ? ' (not stored: dry run)' : ''}`;
  const byKind = Object.entries(kinds).toSorted(([, a], [, b]) => b - a);
  const parts = byKind.map(([kind, times]) => `${kind} ${number(times)}`).join(', ');
  return [
    head,
    ...(parts === '' ? [] : [`  ${parts}`]),
    ...renderNotes('repaired', repaired),
    ...renderNotes('left out', skipped),
  ].join('\n');
}

function renderNotes(title: string, notes: readonly ImportNote[]): string[] {
  if (notes.length === 0) return [];
  const rows = notes.map(({ kind, count: times, examples }) => [
    `  ${kind.replaceAll('_', ' ')}`,
    number(times),
    paint('dim', printable(examples[0] ?? '')),
  ]);
  return [`${title}:`, table(rows, [1])];
}
