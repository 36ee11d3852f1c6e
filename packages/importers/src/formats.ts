import { readChatGpt } from './read-chatgpt.ts';
import { readClaudeCode } from './read-claude-code.ts';
import { readCodex } from './read-codex.ts';
import { readDialogue, readLocomo } from './read-dialogue.ts';
import { readOpencode, isOpencodeMessage } from './read-opencode.ts';
import { readPi } from './read-pi.ts';
import {
  type TranscriptReader,
  type ImportNotes,
  noteSkip,
  type TranscriptEntry,
  type TranscriptRecord,
  isObject,
  type JsonObject,
} from './troupe.ts';
import { isSdkMessage, readSdkMessage } from './read-ai-sdk.ts';
import { isGeminiMessage, readGeminiMessage } from './read-gemini.ts';
import { isLangchainMessage, readLangchainMessage } from './read-langchain.ts';
import { isOpenAiMessage, readOpenAiMessage } from './read-openai.ts';
import { messagesOf, sessionsOf, joinSteps } from './parts.ts';

/** In the order in which error messages list them. */
const READERS = {
  pi: readPi,
  'claude-code': readClaudeCode,
  codex: readCodex,
  opencode: readOpencode,
  openai: readMessages,
  'ai-sdk': readMessages,
  langchain: readMessages,
  gemini: readMessages,
  chatgpt: readChatGpt,
  dialogue: readDialogue,
  locomo: readLocomo,
} satisfies Record<string, TranscriptReader>;

export type Format = keyof typeof READERS;

/** The reader of each format, by name. */
export const formats: ReadonlyMap<Format, TranscriptReader> = new Map(
  Object.entries(READERS) as [Format, TranscriptReader][],
);

const PI_TYPES = new Set([
  'session',
  'model_change',
  'thinking_level_change',
  'compaction',
  'branch_summary',
]);
const CODEX_TYPES = new Set(['session_meta', 'response_item', 'event_msg', 'turn_context', 'compacted']);
const CLAUDE_TYPES = new Set([
  'user',
  'assistant',
  'system',
  'summary',
  'attachment',
  'queue-operation',
  'progress',
]);
const CLAUDE_KEYS = ['uuid', 'parentUuid', 'leafUuid', 'isSidechain', 'sessionId', 'session_id'];

/** The format whose reader understands this value. Null if none does; a later value of the file may still be known. */
export function detectFormat(value: unknown): Format | null {
  if (Array.isArray(value)) return formatOfList(value);
  if (!isObject(value)) return null;
  if (typeof value['messages_display'] === 'string') return 'dialogue';
  if (sessionsOf(value).length > 0) return 'locomo';
  if (isObject(value['mapping'])) return 'chatgpt';
  const lines = typeof value['type'] === 'string' ? formatOfLine(value, value['type']) : null;
  if (lines !== null) return lines;
  const messages = messagesOf(value);
  return messages === null ? formatOfMessage(value) : (formatOfList(messages) ?? 'openai');
}

/** The format of a file with one typed record per line. */
function formatOfLine(value: JsonObject, type: string): Format | null {
  if (CODEX_TYPES.has(type) && isObject(value['payload'])) return 'codex';
  const hasKeys = CLAUDE_KEYS.some((key) => key in value);
  if (hasKeys && (CLAUDE_TYPES.has(type) || 'uuid' in value || 'sessionId' in value)) return 'claude-code';
  const isPi = PI_TYPES.has(type) || (type === 'message' && isObject(value['message']));
  return isPi && !('encrypted_content' in value) ? 'pi' : null;
}

/** Decided by the first message of a known format. */
function formatOfList(messages: readonly unknown[]): Format | null {
  for (const message of messages) {
    const format = formatOfMessage(message);
    if (format !== null) return format;
  }
  return null;
}

function formatOfMessage(value: unknown): Format | null {
  if (isOpencodeMessage(value)) return 'opencode';
  if (isSdkMessage(value)) return 'ai-sdk';
  if (isLangchainMessage(value)) return 'langchain';
  if (isGeminiMessage(value)) return 'gemini';
  return isOpenAiMessage(value) ? 'openai' : null;
}

/** Reads a message or item of a conversation, in one of the forms that chat programs write. */
type MessageReader = (line: number, message: unknown, notes: ImportNotes) => Iterable<TranscriptEntry>;

/** Reads lists of messages: records that are whole conversations, or single messages that together form one. */
async function* readMessages(
  records: AsyncIterable<TranscriptRecord>,
  report: ImportNotes,
): AsyncGenerator<TranscriptEntry, void> {
  yield* joinSteps(entriesOf(records, report), report);
}

async function* entriesOf(
  records: AsyncIterable<TranscriptRecord>,
  report: ImportNotes,
): AsyncGenerator<TranscriptEntry, void> {
  let loose = false;
  for await (const { line, value } of records) {
    const messages = messagesOf(value);
    if (messages !== null) {
      loose = false;
      yield { kind: 'begin', name: null, alone: false };
      for (const message of messages) yield* readMessage(line, message, report);
    } else if (readerOf(value)) {
      if (!loose) yield { kind: 'begin', name: null, alone: true };
      loose = true;
      yield* readMessage(line, value, report);
    } else noteSkip(report, 'unknown_line', line, value);
  }
}

/** Decided by the message's own form: one list may have messages of several programs. */
function* readMessage(line: number, message: unknown, notes: ImportNotes): Generator<TranscriptEntry, void> {
  const read = readerOf(message);
  if (read) yield* read(line, message, notes);
  else noteSkip(notes, 'unknown_line', line, message);
}

function readerOf(message: unknown): MessageReader | null {
  if (isSdkMessage(message)) return readSdkMessage;
  if (isLangchainMessage(message)) return readLangchainMessage;
  if (isGeminiMessage(message)) return readGeminiMessage;
  return isOpenAiMessage(message) ? readOpenAiMessage : null;
}
