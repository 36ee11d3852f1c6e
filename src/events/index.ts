/** The language: everything the rest of Troupe says about conversations, in zod. Imports nothing of ours. */
export * from './actor-record.ts';
export * from './author.ts';
export * from './baseline.ts';
export * from './command.ts';
export * from './compaction.ts';
export * from './event.ts';
export * from './event-context.ts';
export * from './ids.ts';
export * from './message.ts';
export * from './mode.ts';
export * from './nearest.ts';
export * from './prompt.ts';
export * from './runtime-id.ts';
export * from './step.ts';
export * from './stream-delta.ts';
export * from './turn.ts';
export * from './usage.ts';
