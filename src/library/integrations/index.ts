/** `troupe/integrations`: everything an integration needs, and another database. */
export { type Clock, systemClock } from '../../base/clock.ts';
export { TroupeError, toTroupeError } from '../../base/errors.ts';
export {
  AgentId,
  type ConversationId,
  type Event,
  type EventId,
  eventOf,
  parseTurnId,
} from '../../events/index.ts';
export { type KeyValue, memoryKeyValue, updateEntry } from '../../base/key-value.ts';
export type { TranscriptEntry, TranscriptReader, TranscriptRecord } from '../import/importers.ts';
export { addNotes, type ImportNotes, noteRepair, noteSkip } from '../import/report.ts';
export { KeyedBuckets, TokenBucket } from '../../base/token-bucket.ts';
export * from './database.ts';
export { type Follower, type FollowerStatus, RetryAfter } from './follower.ts';
export { followLog, type FollowParts, type LogFollower } from './follow-log.ts';
export type {
  IncomingMessage,
  Integration,
  IntegrationHost,
  IntegrationTroupe,
  NameOf,
} from './integration.ts';
export type {
  AgentKey,
  AgentKeys,
  AgentKeysParts,
  NostrOutboxStatus,
  NostrPackage,
  NostrStatus,
  RelayAnswer,
  RelayInformation,
  RelayReport,
} from './nostr.ts';
export { leavePeriod, takeLeft } from './period.ts';
