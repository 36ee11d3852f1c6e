/** Troupe's public API. Fakes and conformance suites for adapters are under `troupe/testing`. */
import './require-node.ts';

export { defineTroupe, parseTroupe, type TroupeInput } from './config/agents-file.ts';
export type { AboutInstructions } from './actors/engine/agent-runtime.ts';
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
} from './config/agent-input.ts';
export type { LimitInput } from './config/limit-settings.ts';
export { type Clock, systemClock } from './clock.ts';
export { type ErrorCode, type ErrorPolicy, TroupeError } from './errors.ts';
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
} from './integrations/integration.ts';
export type { KeyValue } from './key-value.ts';
export type { AppOptions } from './http/app.ts';
export { createApp, nodeListener } from './http-on-demand.ts';
export { createOrchestrator, type Orchestrator, type OrchestratorOptions } from './routing/orchestrator.ts';
export { openSafeFetch, type SafeFetch, type SafeFetchOptions, type SafeResponse } from './net/safe-fetch.ts';
export { redactSecrets } from './config/redact-secrets.ts';
export type { RedactText } from './actors/log/redaction.ts';
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
export type { ChatBlock, ChatCall, ChatChange } from './asking/chat-change.ts';
export { chatChanges } from './asking/chat-changes.ts';
export { createTroupe, type TroupeOptions } from './runtime.ts';
export {
  boundedFetch,
  defineProvider,
  type ModelCall,
  type ProviderDefinition,
} from './providers/define-provider.ts';
export { defineEmbedder, type EmbedderDefinition } from './providers/define-embedder.ts';
export type { Embedder } from './providers/embedder.ts';
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
export { defineTool, type Tool, type ToolContext } from './tools/tool.ts';
export type {
  ActorStatus,
  Answer,
  Asked,
  AskOptions,
  Wait,
  Checkpoint,
  Conversation,
  CostReport,
  ImportRequest,
  InspectedPrompt,
  LogProblem,
  LogVerification,
  AttachmentByAddress,
  NewAttachment,
  ReadAttachment,
  NewMessage,
  PromptDiff,
  TurnComparison,
  SentPrompt,
  TaskInfo,
  TaskList,
  Troupe,
  TurnTrace,
} from './troupe.ts';
export type { TypedConversation, TypedTroupe } from './typed-troupe.ts';
export type { LogCode, LogFacts, Logger, LogIds, LogLevel } from './logger.ts';
export type { Metrics } from './metrics.ts';
export type { TracingOptions } from './tracing.ts';
export { loadAgentsFile } from './config/load-agents-file.ts';
