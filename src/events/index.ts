/** The vocabulary of conversations as zod schemas. Imports only `errors.ts` from the rest of Troupe. */
export * from './actor-record.ts';
export * from './aspects.ts';
export * from './command.ts';
export * from './compaction.ts';
export * from './coordination.ts';
export * from './event.ts';
export * from './ids.ts';
export * from './import-rule.ts';
export * from './live-notes.ts';
export * from './message.ts';
export * from './message-text.ts';
export * from './model-table.ts';
export * from './parse.ts';
export * from './prompt.ts';
export * from './session.ts';
export * from './task.ts';
export * from './turn.ts';
