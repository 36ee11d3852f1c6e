/** Our own exports, and with `@troupe/importers` transcripts of other programs, as drafts. */
export { admitDraft } from './draft-writer.ts';
export { exportConversation } from './troupe-format.ts';
export { readImportRequest } from './import-transcript.ts';
export { importTranscript, noteItem } from './import-transcript.ts';
export type { ImportOptions } from './import-transcript.ts';
export type { ImportItem, RecordedSummary } from './draft-writer.ts';
export { newImportReport, noteSkip } from './report.ts';
export type { ImportNote, ImportReport } from './report.ts';
