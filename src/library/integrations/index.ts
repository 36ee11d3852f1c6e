/** `troupe/integrations`: everything an integration needs, another database, providers of models and doors in packages of their own. */
export { type AttendedTroupe, type Clock, systemClock } from '../../base/clock.ts';
export { ERROR_CODES, policyOf, TroupeError, toTroupeError } from '../../base/errors.ts';
export { makePrivateDir } from '../../base/private-files.ts';
export { signalGroup } from '../../base/process-group.ts';
export { Cutter } from '../../base/net/cutter.ts';
export { canonicalJson } from '../../events/json.ts';
export {
  addUsage,
  AgentId,
  type AskedReply,
  type Author,
  type CommandOf,
  ConversationId,
  type DelegationOpenedBody,
  type Event,
  EventId,
  type EventOf,
  eventOf,
  isAbout,
  JsonData,
  NO_USAGE,
  nearestName,
  type Note,
  parseExact,
  parseGiven,
  parseTurnId,
  type PromptMessage,
  type ToolCall,
  type ToolSpec,
  tryParse,
  TurnId,
  type TurnNote,
  type Usage,
} from '../../events/index.ts';
export { type ByKind, forKind } from '../../events/aspects.ts';
export type { KindAbout } from '../../events/kinds.ts';
export { messageText } from '../../events/message-text.ts';
export { type KeyValue, memoryKeyValue, updateEntry } from '../../base/key-value.ts';
export type { TranscriptEntry, TranscriptReader, TranscriptRecord } from '../import/importers.ts';
export { isObject, type JsonObject, jsonText, nameOf, textOf, timeOf, validTime } from '../import/report.ts';
export { addNotes, type ImportNotes, noteRepair, noteSkip } from '../import/report.ts';
export { KeyedBuckets, TokenBucket } from '../../base/token-bucket.ts';
export {
  covers,
  isGranted,
  LOCAL,
  type Principal,
  type PublicSigningKey,
  type Scope,
  SCOPES,
} from '../access/index.ts';
export * from './database.ts';
export * from './testing.ts';
export { type Door, type DoorName, DOORS } from './door.ts';
export { type Follower, type FollowerStatus, pauseAfter, RetryAfter } from './deliver.ts';
export { followLog, type FollowParts, type LogFollower } from './follow-log.ts';
export type {
  IncomingMessage,
  Integration,
  IntegrationBase,
  IntegrationHost,
  IntegrationTroupe,
  NameOf,
  Outgoing,
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
export type { PostAnswer } from './webhook.ts';
export { Signal } from './follow-log.ts';
export { Address } from './webhook.ts';
export { leavePeriod, takeLeft } from './follow-log.ts';
export { shownImages } from '../../providers/call-text.ts';
export { classifyFailure, type VendorError } from '../../providers/classify-failure.ts';
export { guardedStream, type StreamWatch } from '../../providers/guard-stream.ts';
export { type MessageEvent, type PlacedThought, readMessageEvents } from '../../providers/message-stream.ts';
export { appendSchema } from '../../providers/plain-schema.ts';
export {
  type ModelEvent,
  type ModelFailure,
  type ModelRequest,
  type Provider,
  type ProviderCapabilities,
  type ResponseName,
  type SessionChange,
  type SessionMark,
  STATELESS,
} from '../../providers/provider.ts';
export {
  type ReplyLimits,
  replyLimits,
  type ReplyLimitSettings,
  ReplyMeter,
  replyTooLong,
} from '../../providers/reply-limits.ts';
export { vendorEnd } from '../../providers/stop-reasons.ts';
export { ownFailure, serverOf, type VendorFetch, vendorFetch } from '../../providers/vendor-fetch.ts';
