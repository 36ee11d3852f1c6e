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
export { words } from './follow.ts';
export type { FollowOptions, Words } from './follow.ts';
export { TroupeError } from './troupe.ts';
export type { ApiClient, Attachment, Author, ErrorCode, ErrorPolicy, Event, StreamFrame } from './troupe.ts';
