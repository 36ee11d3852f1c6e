/** `@troupe/importers`: transcripts of other programs. `troupe.import`, `POST /api/import` and `troupe import` load it. */
export { detectFormat } from './detect-format.ts';
export { type Format, formats } from './formats.ts';
