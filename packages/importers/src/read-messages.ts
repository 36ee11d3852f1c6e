import { joinSteps } from './parts.ts';
import { isSdkMessage, readSdkMessage } from './read-ai-sdk.ts';
import { isGeminiMessage, readGeminiMessage } from './read-gemini.ts';
import { isLangchainMessage, readLangchainMessage } from './read-langchain.ts';
import { isOpenAiMessage, readOpenAiMessage } from './read-openai.ts';
import { messagesOf } from './shape.ts';
import { type ImportNotes, noteSkip, type TranscriptEntry, type TranscriptRecord } from './troupe.ts';

/** A message or an item of a conversation in one of the shapes that chat programs write. */
export type MessageReader = (line: number, message: unknown, notes: ImportNotes) => Iterable<TranscriptEntry>;

/** Lists of messages: records that are whole conversations, or loose messages that together are one. */
export async function* readMessages(
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

/** By its own shape: one list may have messages of several programs. */
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
