import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { AgentId, EventDraft } from '../../src/events/index.ts';
import { importTranscript, newImportReport } from '../../src/library/import/index.ts';
import type { ImportItem, ImportOptions, ImportReport } from '../../src/library/import/index.ts';

export const AGENT = 'coder' as AgentId;
export type Imported = { items: ImportItem[]; drafts: EventDraft[]; report: ImportReport };

export async function collect(
  source: string | Iterable<string | Uint8Array>,
  options: Partial<ImportOptions> = {},
): Promise<Imported> {
  const report = newImportReport();
  const chunks = typeof source === 'string' ? [source] : source;
  const items: ImportItem[] = [];
  for await (const item of importTranscript(streamed(chunks), { agent: AGENT, ...options }, report))
    items.push(item);
  return { items, drafts: items.flatMap((item) => item.draft ?? []), report };
}

async function* streamed<T>(chunks: Iterable<T>): AsyncGenerator<T> {
  yield* chunks;
}

export function jsonl(...values: unknown[]): string {
  return values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value))).join('\n');
}

/** Byte chunks cut at the given positions, wherever they fall in a UTF-8 sequence. */
export function cut(text: string, positions: number[]): Uint8Array[] {
  const bytes = new TextEncoder().encode(text);
  const points = [0, ...positions.map((p) => p % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return points.slice(1).map((end, i) => bytes.subarray(points[i], end));
}

export function countOf(notes: { kind: string; count: number }[], kind: string): number {
  return notes.find((note) => note.kind === kind)?.count ?? 0;
}

export function keyValueOf(notes: { kind: string; count: number }[]): Record<string, number> {
  return Object.fromEntries(notes.map((note) => [note.kind, note.count]));
}

/** `kind` of every draft, and the text that it carries. */
export function told(drafts: EventDraft[]): string[] {
  return drafts.map((draft) => `${draft.kind} ${draft.author.name}: ${textIn(draft)}`);
}

export function textIn(draft: EventDraft): string {
  if (draft.kind === 'turn.aborted' || draft.kind === 'turn.failed') return draft.body.partial;
  const hasContent = draft.kind === 'message' || draft.kind === 'step' || draft.kind === 'tool.result';
  return hasContent ? draft.body.content : '';
}

export const DATA = fileURLToPath(new URL('../../../shared/data', import.meta.url));
export const HAS_DATA = existsSync(DATA);
