/** The vocabulary of conversations as zod schemas. Imports only `errors.ts` from the rest of Troupe. */
export * from './actor-record.ts';
export * from './aspects.ts';
export * from './bodies.ts';
export * from './erased-words.ts';
export * from './erasure.ts';
export * from './event.ts';
export * from './former-ids.ts';
export * from './ids.ts';
export * from './json.ts';
export * from './kinds.ts';
export * from './live-notes.ts';
export * from './message-text.ts';
export * from './model-table.ts';
export * from './parse.ts';
export * from './person.ts';
