import { isObject, messagesOf, sessionsOf } from './shape.ts';

export const FORMATS = ['troupe', 'pi', 'claude-code', 'openai', 'dialogue', 'locomo'] as const;
export type Format = (typeof FORMATS)[number];

const PI_TYPES = new Set(['session', 'model_change', 'thinking_level_change']);
const CLAUDE_KEYS = ['uuid', 'parentUuid', 'leafUuid', 'isSidechain', 'sessionId'];

/** The format whose reader understands this value; null if none does, which is no proof against the rest of the file. */
export function detectFormat(value: unknown): Format | null {
  if (Array.isArray(value)) return messagesOf(value) === null ? null : 'openai';
  if (!isObject(value)) return null;
  if (typeof value['troupe'] === 'number') return 'troupe';
  if (typeof value['messages_display'] === 'string') return 'dialogue';
  if (sessionsOf(value).length > 0) return 'locomo';
  if (typeof value['type'] === 'string') {
    if (CLAUDE_KEYS.some((key) => key in value)) return 'claude-code';
    if (PI_TYPES.has(value['type'])) return 'pi';
    if (value['type'] === 'message' && isObject(value['message'])) return 'pi';
  }
  return messagesOf(value) !== null || typeof value['role'] === 'string' ? 'openai' : null;
}

/** One line for error messages. */
export function formatList(): string {
  return `supported formats: ${FORMATS.join(', ')}`;
}
