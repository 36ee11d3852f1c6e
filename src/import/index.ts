/** Transcripts of other programs, and our own exports, as drafts. */
export { admitDraft } from './admit-draft.ts';
export { exportConversation } from './export-conversation.ts';
export { FORMATS } from './format.ts';
export type { Format } from './format.ts';
export { importTranscript } from './import-transcript.ts';
export type { ImportOptions } from './import-transcript.ts';
export type { ImportItem } from './draft-writer.ts';
export { newImportReport } from './report.ts';
export type { ImportNote, ImportReport } from './report.ts';
