/** What adapters and applications test with: conformance suites, fakes, a clock that stands still, and a log checker. */
export { admissionConformance, type AdmissionOpening, type AdmissionStage } from './admission-conformance.ts';
export { broadcastConformance } from './broadcast-conformance.ts';
export { type CheckOptions, checkLog, type Invariant, type Violation } from './check-log.ts';
export { checkSessions } from './check-sessions.ts';
export { collectEvents, type CollectOptions, sampleRequest, textOf } from './collect-events.ts';
export type { ConformanceCase } from './conformance.ts';
export * from './embedder-conformance.ts';
export * from './fake-anthropic.ts';
export { createFakeClock, type FakeClock } from './fake-clock.ts';
export * from './fake-embedder.ts';
export * from './fake-openai.ts';
export * from './fake-openai-responses.ts';
export * from './fake-sessions.ts';
export { FAKE_USAGE, type FakeHandler, type FakeReply, type FakeRequest } from './fake-reply.ts';
export * from './provider-conformance.ts';
export * from './router-conformance.ts';
export * from './session-conformance.ts';
export { storeConformance } from './store-conformance.ts';
