import type { Format } from './formats.ts';
import { isSdkMessage } from './read-ai-sdk.ts';
import { isGeminiMessage } from './read-gemini.ts';
import { isLangchainMessage } from './read-langchain.ts';
import { isOpenAiMessage } from './read-openai.ts';
import { isOpencodeMessage } from './read-opencode.ts';
import { isObject, type JsonObject, messagesOf, sessionsOf } from './shape.ts';

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

/** Of the formats that have a typed record a line. */
function formatOfLine(value: JsonObject, type: string): Format | null {
  if (CODEX_TYPES.has(type) && isObject(value['payload'])) return 'codex';
  const hasKeys = CLAUDE_KEYS.some((key) => key in value);
  if (hasKeys && (CLAUDE_TYPES.has(type) || 'uuid' in value || 'sessionId' in value)) return 'claude-code';
  const isPi = PI_TYPES.has(type) || (type === 'message' && isObject(value['message']));
  return isPi && !('encrypted_content' in value) ? 'pi' : null;
}

/** By the first message that is known. */
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
