/** `@troupe/importers`: transcripts of other programs. `troupe.import`, `POST /api/import` and `troupe import` load it. */
export { detectFormat } from './formats.ts';
export { type Format, formats } from './formats.ts';
