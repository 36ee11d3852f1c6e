export { createTroupeClient } from './troupe-client.ts';
export type {
  ActOptions,
  AskOptions,
  ClientOptions,
  NewMessage,
  Task,
  ToldAnswer,
  TroupeClient,
} from './troupe-client.ts';
export type { FollowOptions } from './follow.ts';
export { words } from './words.ts';
export type { Words } from './words.ts';
export { TroupeError } from './troupe.ts';
export type { ApiClient, Author, ErrorCode, ErrorPolicy, Event, StreamFrame } from './troupe.ts';
