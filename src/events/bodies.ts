/** The schemas of the bodies. `kinds.ts` names the one of each kind of event. */
export * from './command.ts';
export * from './compaction.ts';
export * from './coordination.ts';
export * from './message.ts';
export * from './prompt.ts';
export * from './session.ts';
export * from './task.ts';
export * from './turn.ts';
