/** Troupe's public API. Fakes and conformance suites for adapters are in `@troupe/testing`. */
import './base/require-node.ts';
import { createRequire } from 'node:module';
import type * as http from './http/api/index.ts';

export { parseTroupe, type TroupeInput } from './library/config/agents-file.ts';
export { defineTroupe } from './library/config/troupe-input.ts';
export type { AboutInstructions } from './actors/actor/agent-runtime.ts';
export type {
  AgentBase,
  AgentInput,
  AnthropicAgent,
  ClaudeCodeAgent,
  A2aAgent,
  CodexAgent,
  CompatibleAgent,
  CustomProviderAgent,
  ModelInput,
  OpenAiAgent,
  ScriptedAgent,
} from './library/config/agent-input.ts';
export type { LimitInput } from './library/config/agents-file.ts';
export { type Clock, systemClock } from './base/clock.ts';
export { type ErrorCode, type ErrorPolicy, TroupeError } from './base/errors.ts';
export type {
  AgentId,
  Author,
  Command,
  ConversationId,
  Event,
  EventDraft,
  EventId,
  EventKind,
  PromptRecord,
  Usage,
} from './events/index.ts';
export type {
  IncomingMessage,
  Integration,
  IntegrationHost,
  IntegrationTroupe,
} from './library/integrations/integration.ts';
export type { KeyValue } from './base/key-value.ts';
export type { AppOptions } from './http/api/app.ts';
export {
  createOrchestrator,
  type Orchestrator,
  type OrchestratorOptions,
} from './library/routing/orchestrator.ts';
export {
  openSafeFetch,
  type SafeFetch,
  type SafeFetchOptions,
  type SafeResponse,
} from './base/net/safe-fetch.ts';
export { redactSecrets } from './library/config/redact-secrets.ts';
export type { RedactText } from './events/redaction.ts';
export type {
  ArgumentsNote,
  CalledNote,
  DroppedNote,
  LiveNote,
  Note,
  ProgressNote,
  ReasoningNote,
  ResultNote,
  StateNote,
  TextNote,
  VoidNote,
} from './events/live-notes.ts';
export { type Answers, awaitAnswers, addressed, nobodyAnswers } from './library/asking/ask.ts';
export {
  type ChatBlock,
  type ChatCall,
  type ChatChange,
  chatChanges,
  type Chat,
  openChat,
  type Concluded,
  wholeExchange,
} from './library/asking/chat.ts';
export { eventJson, followConversation, storedEvents } from './library/asking/follow.ts';
export { createTroupe, openTestTroupe, type TroupeOptions } from './library/runtime/create-troupe.ts';
export {
  boundedFetch,
  defineProvider,
  type ModelCall,
  type ProviderDefinition,
} from './providers/define-provider.ts';
export { defineEmbedder, type EmbedderDefinition, type Embedder } from './providers/embedder.ts';
export type {
  ScriptAnswer,
  ScriptAsked,
  ScriptFunction,
  ScriptInput,
  ScriptRuleInput,
} from './providers/script.ts';
export type { AiSdkEmbeddingModel, AiSdkModel, AiSdkVendor } from './providers/ai-sdk-model.ts';
export {
  type CustomAgent,
  type CustomProvider,
  type ModelEvent,
  type ModelFailure,
  type ModelRequest,
  type Provider,
  type ProviderCapabilities,
} from './providers/provider.ts';
export type { StandardSchema } from './tools/schema.ts';
export { defineTool, type Tool, type ToolContext } from './tools/tool.ts';
export type {
  ActorStatus,
  AgentInfo,
  Answer,
  AskOptions,
  Asked,
  AttachmentByAddress,
  Checkpoint,
  CommandInput,
  Conversation,
  ConversationCost,
  CostPart,
  CostReport,
  CostSum,
  UnknownCost,
  Failure,
  ExportOptions,
  ImportRequest,
  InspectedPrompt,
  LogProblem,
  LogVerification,
  NewAttachment,
  NewMessage,
  PromptDiff,
  ReadAttachment,
  SentPrompt,
  TaskInfo,
  TaskList,
  Troupe,
  TurnComparison,
  TurnTrace,
  Wait,
} from './library/troupe.ts';
export type { TypedConversation, TypedTroupe } from './library/runtime/create-troupe.ts';
export type { StatusOptions } from './library/runtime/status-port.ts';
export type { StdioParts, StdioRelay } from './library/runtime/doors.ts';
export type { LogCode, LogFacts, Logger, LogIds, LogLevel } from './base/logger.ts';
export type { Metrics } from './events/metrics.ts';
export type { TracingOptions } from './base/tracing.ts';
export { loadAgentsFile } from './library/config/load-agents-file.ts';

/** Loads the API at its first use: it takes some 30 MB, which programs without it save. */
function api(): typeof http {
  const isSource = import.meta.url.endsWith('.ts');
  return createRequire(import.meta.url)(`./http/api/index.${isSource ? 'ts' : 'js'}`) as typeof http;
}

/** See `createApp` of `troupe/http`. */
export const createApp: typeof http.createApp = (...given) => api().createApp(...given);
/** See `nodeListener` of `troupe/http`. */
export const nodeListener: typeof http.nodeListener = (...given) => api().nodeListener(...given);
