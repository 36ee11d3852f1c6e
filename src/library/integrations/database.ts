/**
 * What an adapter of another database needs. A store: `createDocumentDriver` over its `Documents`, which are writes of
 * single documents, unique keys and conditional updates; `storeConformance` of `@troupe/testing` tests it. A queue: a
 * `Router`, a `Broadcast` and an `Admission`, each with its own suite there.
 */
export type { ErrorCode } from '../../base/errors.ts';
export {
  ActorAddress,
  addressKey,
  keyOfText,
  spareId,
  type TenantId,
  type Told,
} from '../../events/index.ts';

export { createStore } from '../../store/create-store.ts';
export type {
  ConversationKey,
  NewEvent,
  RecordEvent,
  RecordStep,
  StepEvents,
  Stepped,
  Store,
} from '../../store/store.ts';
export { createDocumentDriver, type DocumentDriver } from '../../store/documents/document-driver.ts';
export type {
  ActorCondition,
  ActorDocuments,
  Addressee,
  DocumentChange,
  Documents,
  EntryDocuments,
  EventDocuments,
  LogEnd,
  LogKey,
  PassageDocuments,
  StandingDocuments,
  WholeStepped,
  WholeSteps,
} from '../../store/documents/documents.ts';
export { changedRow } from '../../store/actor-row.ts';
export { conditionOf } from '../../store/documents/actor-steps.ts';
export { type AddressedEvent, eachAddressee } from '../../store/documents/find-due.ts';
export {
  type ActorChange,
  type ActorKey,
  type ActorRow,
  type ActorStep,
  type ConversationPage,
  type ConversationPlace,
  type ConversationRow,
  type ConversationsQuery,
  type EntryKey,
  type EventRow,
  type NewEventRow,
  pageOf,
  placeOf,
  type StepAppend,
  type StepEvent,
  type StepOutcome,
  type StoreDriver,
} from '../../store/driver.ts';
export type { IdRange } from '../../store/id-range.ts';
export { chainRows, chainValue } from '../../store/event-row.ts';
export {
  type FoundPassage,
  hasTerm,
  type Passage,
  type PassagesQuery,
  type TermCondition,
} from '../../store/passages.ts';
export {
  byStanding,
  emptyRanks,
  type ListedStanding,
  type NewStanding,
  passes,
  STANDING_ORDERS,
  type StandingCounts,
  type StandingFilter,
  type StandingOrder,
  type StandingPage,
  type StandingPlace,
  type StandingRow,
  standingPage,
  standingPlaceOf,
  type StandingsQuery,
} from '../../store/standings.ts';
export { wrapMethods } from '../../store/wrap-methods.ts';

export { type Queue, queueObserver, type QueueOptions, type QueueServer } from '../../queue/queue-server.ts';
export {
  assertStartable,
  MOST_WAITING,
  type QueueDepth,
  type Router,
  type Service,
  type WaitingWake,
  type WakeOutcome,
} from '../../queue/router.ts';
export type { RouterObserver } from '../../queue/queue-server.ts';
export { familyOf } from '../../queue/fair-share.ts';
export { createFairShare, type StorePace } from '../../queue/fair-share.ts';
export type { Broadcast, Notice } from '../../queue/broadcast.ts';
export { createListeners } from '../../queue/in-process-broadcast.ts';
export { decodeNotices } from '../../queue/notice-outbox.ts';
export { createNoticeSender } from '../../queue/notice-outbox.ts';
export {
  type Admission,
  type AdmissionCaps,
  type AdmissionLoad,
  type Entry,
  FORGOTTEN_MS,
  MOST_REFUSED,
} from '../../queue/admission.ts';
export {
  admissionLimits,
  type CallBucket,
  type CallRate,
  DEFAULT_SLOT_MS,
  enterSlot,
  RETRY_TO_MS,
  retryInMs,
  type SlotAsk,
  takeToken,
} from '../../queue/admission-rules.ts';
export { createAskServer } from '../../queue/outage.ts';
export { createHeldSlots, type HeldPlace } from '../../queue/admission-rules.ts';
export { parseSlot, parseWish, slotText, wishText } from '../../queue/admission-rules.ts';
export { createOutage, limitWarnings, type Outage, type Warn } from '../../queue/outage.ts';
