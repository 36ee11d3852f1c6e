import { readChatGpt } from './read-chatgpt.ts';
import { readClaudeCode } from './read-claude-code.ts';
import { readCodex } from './read-codex.ts';
import { readDialogue, readLocomo } from './read-dialogue.ts';
import { readMessages } from './read-messages.ts';
import { readOpencode } from './read-opencode.ts';
import { readPi } from './read-pi.ts';
import type { TranscriptReader } from './troupe.ts';

/** In the order in which messages list them. */
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
