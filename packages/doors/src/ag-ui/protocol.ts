/** The part of AG-UI 1.0 that this door uses. AG-UI's own package is not needed at run time. */
export const PROTOCOL_VERSION = '1.0';

/** Everything that belongs to a sub-agent names its task. */
interface Owned {
  subagentRunId?: string;
}

export interface AgUiCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

/** A text of a person, an agent or the runtime. */
export interface AgUiWords extends Owned {
  id: string;
  role: 'user' | 'assistant' | 'system';
  name?: string;
  /** A client's own messages may consist of parts. */
  content: unknown;
  toolCalls?: AgUiCall[];
  metadata?: object;
}

interface AgUiResult extends Owned {
  id: string;
  role: 'tool';
  toolCallId: string;
  content: string;
  metadata?: object;
}

/** A message of the conversation, in the form of snapshots. */
export type AgUiMessage = AgUiWords | AgUiResult;

/** A question or approval that a run waits for. */
export interface AgUiInterrupt extends Owned {
  id: string;
  reason: 'tool_call' | 'input_required';
  message: string;
  toolCallId?: string;
  responseSchema: object;
  expiresAt?: string;
  metadata: object;
}

export interface PatchOperation {
  op: 'add' | 'replace' | 'remove';
  path: string;
  value?: unknown;
}

type Streamed =
  | {
      type: 'TEXT_MESSAGE_START';
      messageId: string;
      role: AgUiWords['role'];
      name?: string;
      metadata?: object;
    }
  | { type: 'TEXT_MESSAGE_CONTENT'; messageId: string; delta: string }
  | { type: 'TEXT_MESSAGE_END'; messageId: string }
  | { type: 'REASONING_START' | 'REASONING_END' | 'REASONING_MESSAGE_END'; messageId: string }
  | { type: 'REASONING_MESSAGE_START'; messageId: string; role: 'reasoning' }
  | { type: 'REASONING_MESSAGE_CONTENT'; messageId: string; delta: string }
  | { type: 'TOOL_CALL_START'; toolCallId: string; toolCallName: string; parentMessageId: string }
  | { type: 'TOOL_CALL_ARGS'; toolCallId: string; delta: string }
  | { type: 'TOOL_CALL_END'; toolCallId: string }
  | { type: 'TOOL_CALL_RESULT'; messageId: string; toolCallId: string; content: string; metadata?: object }
  | { type: 'STEP_STARTED' | 'STEP_FINISHED'; stepName: string }
  | { type: 'CUSTOM'; name: string; value: unknown };

/** An event within a run. */
export type AgUiEvent =
  | (Streamed & Owned)
  | { type: 'MESSAGES_SNAPSHOT'; messages: readonly AgUiMessage[] }
  | { type: 'STATE_SNAPSHOT'; snapshot: unknown }
  | { type: 'STATE_DELTA'; delta: readonly PatchOperation[] }
  | {
      type: 'SUBAGENT_STARTED';
      subagentRunId: string;
      name: string;
      description: string;
      parentSubagentRunId?: string;
    }
  | {
      type: 'SUBAGENT_FINISHED';
      subagentRunId: string;
      result?: unknown;
      outcome: { type: 'success' } | { type: 'suspended'; interruptIds: string[] };
    }
  | { type: 'SUBAGENT_ERROR'; subagentRunId: string; message: string; code: string };

export interface AgUiUsage {
  inputTokens: number;
  outputTokens: number;
  totalTokens: number;
  reasoningTokens: number;
  cachedInputTokens: number;
  cacheWriteInputTokens: number;
}

export type AgUiOutcome =
  | { type: 'success' }
  | { type: 'interrupt'; interrupts: AgUiInterrupt[] }
  | { type: 'cancelled' };

/** The beginning or end of a run. */
export type AgUiLifecycle =
  | {
      type: 'RUN_STARTED';
      threadId: string;
      runId: string;
      protocolVersion: string;
      parentRunId?: string;
    }
  | {
      type: 'RUN_FINISHED';
      threadId: string;
      runId: string;
      result?: unknown;
      outcome: AgUiOutcome;
      usage?: AgUiUsage[];
    }
  | { type: 'RUN_ERROR'; message: string; code: string };
