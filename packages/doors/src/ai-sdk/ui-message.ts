import { type Event, eventOf } from '../troupe.ts';

/** A part of a message, of a type that chunks produce, or `text` and `file` of people. */
export interface UiPart {
  type: string;
  [field: string]: unknown;
}

/** A message as clients of the AI SDK keep it. */
export interface UiMessage {
  id: string;
  role: 'user' | 'assistant';
  metadata?: unknown;
  parts: UiPart[];
}

/** The id of the message with everything that followed from an event. */
function answerIdOf(root: number): string {
  return `answer-${root}`;
}

/** The first chunk of such a message. */
export function startOf(conversation: string, root: number): UiChunk {
  return { type: 'start', messageId: answerIdOf(root), messageMetadata: { conversation, seq: root } };
}

type WordsChunk = Extract<UiChunk, { type: `${'text' | 'reasoning'}-${string}` }>;
type CallChunk = Extract<UiChunk, { type: `tool-${string}` }>;

/** A message that grows by chunks, as it does in clients. Owns which of its parts are open. */
export class UiMessageBuilder {
  readonly message: UiMessage;
  readonly #open = new Map<string, UiPart>();
  readonly #calls = new Map<string, UiPart>();
  /** The parts of calls that need approval, by the id of the approval. */
  readonly #approvals = new Map<string, UiPart>();

  constructor(conversation: string, root: number) {
    const metadata = { conversation, seq: root };
    this.message = { id: answerIdOf(root), role: 'assistant', metadata, parts: [] };
  }

  take(chunk: UiChunk): void {
    if (isWords(chunk)) this.#words(chunk);
    else if (isCall(chunk)) this.#call(chunk);
    else if (isData(chunk)) this.#data(chunk);
  }

  #words(chunk: WordsChunk): void {
    if ('providerMetadata' in chunk) {
      const { id, providerMetadata } = chunk;
      const kind = chunk.type === 'text-start' ? { type: 'text' } : { type: 'reasoning', id };
      this.#open.set(id, this.#add({ ...kind, text: '', providerMetadata, state: 'streaming' }));
      return;
    }
    const part = this.#open.get(chunk.id);
    if (!part) return;
    if ('delta' in chunk) part['text'] = `${String(part['text'])}${chunk.delta}`;
    else part['state'] = 'done';
  }

  #call(chunk: CallChunk): void {
    if (chunk.type === 'tool-input-start' || chunk.type === 'tool-input-available') {
      const { type, toolCallId, toolName } = chunk;
      const begun = { type: 'dynamic-tool', toolCallId, toolName, providerExecuted: true };
      const part = this.#calls.get(toolCallId) ?? this.#add(begun);
      this.#calls.set(toolCallId, part);
      const isWhole = type === 'tool-input-available';
      Object.assign(
        part,
        isWhole ? { state: 'input-available', input: chunk.input } : { state: 'input-streaming' },
      );
      return;
    }
    if (chunk.type === 'tool-approval-response') {
      const part = this.#approvals.get(chunk.approvalId);
      const { approved, reason } = chunk;
      const approval = { ...Object(part?.['approval']), approved, ...(reason !== undefined && { reason }) };
      Object.assign(part ?? {}, { state: 'approval-responded', approval });
      return;
    }
    const part = this.#calls.get(chunk.toolCallId);
    if (!part) return;
    if (chunk.type === 'tool-approval-request') this.#approvals.set(chunk.approvalId, part);
    Object.assign(part, endOf(chunk));
  }

  #data(chunk: DataChunk): void {
    if (chunk.transient) return;
    const known = this.message.parts.find(({ type, id }) => type === chunk.type && id === chunk.id);
    if (known && chunk.id !== undefined) known['data'] = chunk.data;
    else this.#add({ ...chunk });
  }

  #add(part: UiPart): UiPart {
    this.message.parts.push(part);
    return part;
  }
}

/** What a chunk changes in the part of its call. */
function endOf(chunk: Exclude<CallChunk, { toolName: string } | { approved: boolean }>): object {
  switch (chunk.type) {
    case 'tool-input-delta':
      return {};
    case 'tool-approval-request': {
      const approval = { id: chunk.approvalId, descriptor: chunk.approvalDescriptor };
      return { state: 'approval-requested', approval };
    }
    case 'tool-output-available':
      return { state: 'output-available', output: chunk.output };
    case 'tool-output-error':
      return { state: 'output-error', errorText: chunk.errorText };
    case 'tool-output-denied':
      return { state: 'output-denied' };
  }
}

const isWords = (chunk: UiChunk): chunk is WordsChunk => /^(?:text|reasoning)-/.test(chunk.type);
const isCall = (chunk: UiChunk): chunk is CallChunk => chunk.type.startsWith('tool-');
const isData = (chunk: UiChunk): chunk is DataChunk => chunk.type.startsWith('data-');

/** The message of a person, or a person's answer. Null for any other event. */
export function saidIn(event: Event, files: readonly UiPart[] = []): UiMessage | null {
  const { id, author, seq } = event;
  if (author.kind !== 'user') return null;
  const metadata = { author: { id: author.id, name: author.name }, seq };
  const words = (text: string): UiPart[] => (text === '' ? [] : [{ type: 'text', text }]);
  const said = eventOf(event, 'message') ?? eventOf(event, 'notice');
  if (said) return { id, role: 'user', metadata, parts: [...words(said.body.content), ...files] };
  const answered = eventOf(event, 'question.answered');
  if (answered) {
    const { question, content } = answered.body;
    return {
      id,
      role: 'user',
      metadata,
      parts: [...words(content), { type: 'data-answer', data: { question } }],
    };
  }
  const directive = eventOf(event, 'run.directive');
  return directive && { id, role: 'user', metadata, parts: words(directive.body.directive) };
}

/** The origin of a text: `providerMetadata.troupe` of text and reasoning parts. */
interface PartOrigin {
  /** Id of the text; `data-void` refers to it. */
  id: string;
  agent: string;
  turn: string;
}

interface Origin {
  providerMetadata: { troupe: PartOrigin };
}
interface Words {
  id: string;
}
/** Marks a call that the client neither knows nor runs: agents run their tools themselves. */
interface OfAgent {
  dynamic: true;
  providerExecuted: true;
}

/** A chunk of the AI SDK's UI message stream, of a kind that conversations need. */
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

/** A part that only Troupe has. With an `id`, a later part of the same type and id replaces it. */
interface DataChunk {
  type: `data-${'author' | 'handoff' | 'question' | 'void' | 'failure' | 'progress'}`;
  id?: string;
  data: object;
  /** Only passed to `onData`. */
  transient?: true;
}

/** Id of a question or an approval for clients. It includes the conversation if that is a thread of a task. */
export function askedKey(task: string, at: string, conversation: string): string {
  return at === conversation ? task : `${at}/${task}`;
}

/** The conversation and the task in such an id. Neither contains a slash. */
export function readAskedKey(key: string, conversation: string): { conversation: string; task: string } {
  const slash = key.lastIndexOf('/');
  return slash < 0
    ? { conversation, task: key }
    : { conversation: key.slice(0, slash), task: key.slice(slash + 1) };
}
