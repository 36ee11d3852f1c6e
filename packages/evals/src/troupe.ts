/**
 * The only file that imports the core. In the published package it imports `troupe`, `troupe/integrations` and `troupe/testing`:
 * see `scripts/build-package.ts`.
 */
export {
  type AgentInput,
  type Author,
  type Clock,
  type ConversationId,
  defineTool,
  type Event,
  type EventKind,
  loadAgentsFile,
  type ModelEvent,
  type NewAttachment,
  parseTroupe,
  type PromptRecord,
  type Provider,
  redactSecrets,
  type StandardSchema,
  systemClock,
  type Tool,
  type ToolContext,
  type Troupe,
  TroupeError,
  type TroupeInput,
  type TroupeOptions,
  type Usage,
  type Wait,
} from '../../../src/index.ts';
export {
  type ByKind,
  eventOf,
  type EventOf,
  forKind,
  type KindAbout,
  messageText,
  nearestName,
  parseTurnId,
} from '../../../src/library/integrations/index.ts';
export {
  checkLog,
  openTestTroupe,
  recordedServers,
  summariseEvent,
  withoutStaleNote,
  withRecordedServers,
} from '../../../src/testing/index.ts';
