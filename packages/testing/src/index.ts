/** For tests of adapters and applications: conformance suites, fakes, manual clocks, and a log checker. */
export { admissionConformance, type AdmissionOpening, type AdmissionStage } from './admission-conformance.ts';
export { broadcastConformance } from './broadcast-conformance.ts';
export { type CheckOptions, checkLog, checkSessions, type Invariant, type Violation } from './check-log.ts';
export type { ConformanceCase } from './conformance.ts';
export {
  type EmbedderFixture,
  type EmbedderScene,
  type MakeEmbedder,
  embedderConformance,
} from './embedder-conformance.ts';
export { createFakeClock, type FakeClock } from './fake-clock.ts';
export { createTestClock, type TestClock, type TestClockOptions } from './test-clock.ts';
export {
  createFakeEmbedder,
  FAKE_USAGE,
  type FakeEmbedder,
  type FakeFailure,
  type FakeFrames,
  type FakeHandler,
  type FakeReply,
  type FakeRequest,
  type FakeServer,
  type FakeVendor,
  fakeVector,
  startFakeAnthropic,
  startFakeOpenAi,
  startFakeOpenAiResponses,
  startFakeServer,
} from './fake-vendors.ts';
export {
  type SessionMemory,
  type SeenCall,
  type FakeSessionsOptions,
  newSessionMemory,
  createFakeSessions,
} from './fake-sessions.ts';
export {
  collectEvents,
  type CollectOptions,
  type MakeProvider,
  providerConformance,
  type ProviderFixture,
  type ProviderScene,
  sampleRequest,
  textOf,
} from './provider-conformance.ts';
export * from './router-conformance.ts';
export * from './session-conformance.ts';
export { createToolContext } from './tool-context.ts';
export { inboxConformance } from './inbox-conformance.ts';
export { storeConformance } from './store-conformance.ts';
