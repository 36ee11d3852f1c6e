/** Transcripts of other programs, and our own exports, as drafts. */
export { admitDraft } from './admit-draft.ts';
export { exportConversation } from './troupe-format.ts';
export { FORMATS } from './report.ts';
export type { Format } from './report.ts';
export { readImportRequest } from './read-request.ts';
export { importTranscript, noteItem } from './import-transcript.ts';
export type { ImportOptions } from './import-transcript.ts';
export type { ImportItem, RecordedSummary } from './draft-writer.ts';
export { newImportReport, noteSkip } from './report.ts';
export type { ImportNote, ImportReport } from './report.ts';
