/** Where the words of a part come from: `providerMetadata.troupe` of text and reasoning parts. */
export interface PartOrigin {
  /** Id of the words; `data-void` names it. */
  id: string;
  /** Id of the agent. */
  agent: string;
  /** Id of its turn. */
  turn: string;
}

interface Origin {
  providerMetadata: { troupe: PartOrigin };
}
interface Words {
  id: string;
}
/** Agents run their tools themselves, and clients know none of them. */
interface OfAgent {
  dynamic: true;
  providerExecuted: true;
}

/** A chunk of a UI message stream of the AI SDK, of those that a conversation needs. */
export type UiChunk =
  | { type: 'start'; messageId: string; messageMetadata: { conversation: string; seq: number } }
  | ({ type: 'text-start' | 'reasoning-start' } & Words & Origin)
  | ({ type: 'text-delta' | 'reasoning-delta'; delta: string } & Words)
  | ({ type: 'text-end' | 'reasoning-end' } & Words)
  | ({ type: 'tool-input-start'; toolCallId: string; toolName: string } & OfAgent)
  | { type: 'tool-input-delta'; toolCallId: string; inputTextDelta: string }
  | ({ type: 'tool-input-available'; toolCallId: string; toolName: string; input: unknown } & OfAgent)
  | { type: 'tool-approval-request'; approvalId: string; toolCallId: string; approvalDescriptor: object }
  | { type: 'tool-approval-response'; approvalId: string; approved: boolean; reason?: string }
  | { type: 'tool-output-available'; toolCallId: string; output: unknown }
  | { type: 'tool-output-error'; toolCallId: string; errorText: string }
  | { type: 'tool-output-denied'; toolCallId: string }
  | DataChunk
  | { type: 'error'; errorText: string }
  | { type: 'finish'; finishReason: 'stop' | 'tool-calls' };

/** A part that only Troupe has. With an `id`, a later one of the same type and id replaces it. */
export interface DataChunk {
  type: `data-${'author' | 'handoff' | 'question' | 'void' | 'failure' | 'progress'}`;
  id?: string;
  data: object;
  /** Shown by `onData` only. */
  transient?: true;
}
