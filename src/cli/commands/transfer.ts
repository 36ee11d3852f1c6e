import { createReadStream, createWriteStream } from 'node:fs';
import { stat, open } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { TroupeError } from '../../base/errors.ts';
import type { ImportNote, ImportReport } from '../../library/import/index.ts';
import type { ErasureReceipt, ImportRequest } from '../../library/troupe.ts';
import { type ClientOptions, connect } from '../client/connect.ts';
import { count, number, paint, print, printable, printJson, table } from '../render/output.ts';
import { pipeline } from 'node:stream/promises';
import { authorNamed, type Client, type ErasureTarget } from '../client/client.ts';

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

/** Reads the file without storing anything. */
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

/** Passes chunks on, and reports their number on stderr if that is a terminal. */
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

interface ExportFlags extends ClientOptions {
  out?: string;
  html?: boolean;
  /** False with `--no-threads`. */
  threads?: boolean;
  keepSecrets?: boolean;
}

/** End of the first line of an export from which secrets were removed. Text of events has its quotes escaped. */
const HIDDEN = '"secrets":"hidden"}\n';
const WITHOUT_SECRETS = ', without what looks like a secret (--keep-secrets keeps it)';

export async function exportConversation(conversation: string, options: ExportFlags): Promise<void> {
  const { html, out, json, threads, keepSecrets } = options;
  const client = await connect(options, { needs: 'data' });
  try {
    let lines = 0;
    let head = '';
    const chunks = client.export(conversation, {
      format: html ? 'html' : 'jsonl',
      threads,
      secrets: keepSecrets ? 'kept' : 'hidden',
    });
    const source = await readExport(chunks, (chunk) => {
      // Over HTTP a chunk may end within the first line.
      if (!head.includes('\n')) head += chunk;
      lines += chunk.split('\n').length - 1;
    });
    if (out === undefined) return await pipeline(source, process.stdout, { end: false });
    await pipeline(source, createWriteStream(out, { mode: 0o600 })).catch((cause: unknown) => {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new TroupeError('data_unwritable', `cannot write ${out}: ${reason}`, { out }, { cause });
    });
    if (json) printJson({ conversation, out, lines });
    else print(`${count(lines, 'line')} written to ${out}${head.includes(HIDDEN) ? WITHOUT_SECRETS : ''}`);
  } finally {
    await client.close();
  }
}

/**
 * Passes on the chunks of an export, and calls `onChunk` with each. Reads the first chunk at once: callers create their file
 * afterwards, so an unknown conversation leaves no file behind.
 */
async function readExport(
  chunks: AsyncGenerator<string>,
  onChunk: (chunk: string) => void,
): Promise<AsyncGenerator<string>> {
  const first = await chunks.next();
  async function* all(): AsyncGenerator<string> {
    for (let next = first; !next.done; next = await chunks.next()) {
      onChunk(next.value);
      yield next.value;
    }
  }
  return all();
}

interface DeleteOptions extends ClientOptions {
  /** False with `--no-export`. */
  export?: string | false;
}

/** Deletes a conversation after its export is on disk, or without an export for `--no-export`. */
export async function deleteConversation(conversation: string, options: DeleteOptions): Promise<void> {
  const { export: out, json } = options;
  if (out === undefined) {
    const message = 'keep a copy with --export FILE, or delete without one with --no-export';
    throw new TroupeError('event_invalid', message, { path: 'export' });
  }
  const client = await connect(options, { needs: 'data' });
  try {
    const exported = out === false ? 'none' : await exportTo(client, conversation, out);
    const deleted = await client.delete(conversation, exported);
    if (json) return printJson({ conversation, out: out === false ? null : out, ...deleted });
    const kept = out === false ? '' : `; ${count(Number(exported), 'event')} saved to ${out}`;
    const threads = deleted.conversations > 1 ? ` with ${count(deleted.conversations - 1, 'thread')}` : '';
    print(`${conversation} is deleted${threads}${kept}`);
  } finally {
    await client.close();
  }
}

/**
 * Returns the number of events in the file once it is on disk. The file will be the only copy, so it must be complete. An
 * existing file is not overwritten.
 */
async function exportTo(client: Client, conversation: string, out: string): Promise<number> {
  let events = 0;
  let rest = '';
  const source = await readExport(client.export(conversation, { secrets: 'kept' }), (chunk) => {
    // A chunk may end within a line. Headers of conversations are not events.
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    events += lines.filter((each) => each !== '' && !each.startsWith('{"troupe":')).length;
  });
  try {
    const file = createWriteStream(out, { flags: 'wx', mode: 0o600, flush: true });
    await pipeline(source, file);
    await flushDirectory(dirname(resolve(out)));
  } catch (cause) {
    if (cause instanceof TroupeError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    const message = `cannot write ${out}: ${reason}; nothing is deleted`;
    throw new TroupeError('data_unwritable', message, { out }, { cause });
  }
  return events;
}

/** A file survives a power cut only once its directory is on disk too. */
async function flushDirectory(path: string): Promise<void> {
  const directory = await open(path);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

interface EraseOptions extends ClientOptions {
  yes?: boolean;
  as?: string;
  conversation?: string;
  wholeTenant?: string;
}

/** Erases a person's text, a conversation or a tenant, and prints the receipt. */
export async function erase(person: string | undefined, options: EraseOptions): Promise<void> {
  const target = targetOf(person, options);
  if (!options.yes) {
    const message = `this erases ${target.words}, for good: add --yes to confirm`;
    throw new TroupeError('event_invalid', message, { path: 'yes' });
  }
  const client = await connect(options, { needs: 'data' });
  try {
    const isShown = process.stderr.isTTY && !options.json;
    const receipt = await client.erase(target.of, authorNamed(options.as), ({ conversation, read }) => {
      if (isShown) process.stderr.write(`\r${number(read)} conversations read: ${conversation}\u001b[K`);
    });
    if (isShown) process.stderr.write('\r\u001b[K');
    if (options.json) return printJson(receipt);
    print(renderErasure(receipt));
  } finally {
    await client.close();
  }
}

function targetOf(
  person: string | undefined,
  { conversation, wholeTenant }: EraseOptions,
): { of: ErasureTarget; words: string } {
  const given = [person, conversation, wholeTenant].filter((each) => each !== undefined);
  if (given.length !== 1) {
    const message = 'say what to erase: the id of a person, --conversation ID, or --whole-tenant ID';
    throw new TroupeError('event_invalid', message, { path: 'person' });
  }
  if (person !== undefined) return { of: { person }, words: `what ${person} has said in all conversations` };
  if (conversation !== undefined)
    return { of: { conversation }, words: `the conversation ${conversation} with its threads and files` };
  const words = `all conversations, files and profiles of tenant ${wholeTenant}`;
  return { of: { tenant: wholeTenant }, words };
}

function erasedName(receipt: ErasureReceipt): string {
  if ('person' in receipt) return `The words of ${receipt.person} are erased`;
  return 'conversation' in receipt
    ? `The conversation ${receipt.conversation} is erased`
    : `Tenant ${receipt.tenant} is erased`;
}

function renderErasure(receipt: ErasureReceipt): string {
  const { events, conversations, attachments, entries, sessions, id, remains, outside } = receipt;
  const what = [
    `${count(events, 'event')} in ${count(conversations, 'conversation')}`,
    count(attachments, 'file'),
    ...(entries > 0 ? [`${count(entries, 'output')} and notes`] : []),
    ...(sessions > 0 ? [`${count(sessions, 'session')} ended`] : []),
  ];
  return [
    `${erasedName(receipt)}: ${what.join(', ')} (receipt ${id})`,
    ...(remains.length > 0 ? ['The store may still have:', ...remains.map((each) => `  - ${each}`)] : []),
    'No store reaches:',
    ...outside.map((each) => `  - ${each}`),
  ].join('\n');
}
