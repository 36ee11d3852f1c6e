import { type ForeignCall, type ForeignResult, plainText } from './parts.ts';
import {
  isObject,
  type JsonObject,
  jsonText,
  textOf,
  timeOf,
  type ImportNotes,
  noteRepair,
  noteSkip,
  type TranscriptEntry,
} from './troupe.ts';

/** Whether this is a message of a chat saved by Gemini CLI, or a content of the Gemini API. */
export function isGeminiMessage(value: unknown): value is JsonObject {
  if (!isObject(value)) return false;
  if (typeof value['role'] === 'string') return Array.isArray(value['parts']);
  return (value['type'] === 'user' || value['type'] === 'gemini') && 'content' in value;
}

/**
 * Chats of Gemini CLI: `{type: 'user' | 'gemini', content, toolCalls}`, and contents of the API: `{role: 'user' | 'model', parts}`.
 * https://github.com/google-gemini/gemini-cli/blob/main/packages/core/src/services/chatRecordingService.ts
 */
export function* readGeminiMessage(
  line: number,
  message: unknown,
  notes: ImportNotes,
): Generator<TranscriptEntry, void> {
  if (!isObject(message)) return;
  const at = timeOf(message['timestamp']);
  const role = message['role'] ?? message['type'];
  const { texts, calls, results } = readContent(message, line, notes);
  const text = texts.join('\n');
  if (role === 'model' || role === 'gemini') {
    yield { kind: 'assistant', line, at, text, calls, reasoning: null, ended: null };
  }
  for (const result of results) yield { kind: 'result', line, at, ...result };
  if (role === 'system' || role === 'user') {
    if (text !== '' || results.length === 0) yield { kind: 'said', line, at, author: role, text };
  } else if (role !== 'model' && role !== 'gemini' && role !== 'function')
    noteSkip(notes, 'unknown_role', line, role);
}

type Content = { texts: string[]; calls: ForeignCall[]; results: ForeignResult[] };

function readContent(message: JsonObject, line: number, notes: ImportNotes): Content {
  const content = message['parts'] ?? message['content'];
  const read: Content = { texts: [], calls: [], results: [] };
  for (const part of Array.isArray(content) ? content : [content]) {
    if (typeof part === 'string') read.texts.push(part);
    else if (isObject(part)) readPart(part, read, line, notes);
    else if (part != null) noteSkip(notes, 'unknown_line', line, part);
  }
  const { toolCalls, thoughts } = message;
  for (const tool of Array.isArray(toolCalls) ? toolCalls : []) if (isObject(tool)) addTool(tool, read);
  if (Array.isArray(thoughts) && thoughts.length > 0)
    noteRepair(notes, 'reasoning_dropped', line, 'unsigned');
  return read;
}

function readPart(
  part: JsonObject,
  { texts, calls, results }: Content,
  line: number,
  notes: ImportNotes,
): void {
  const { text, functionCall, functionResponse } = part;
  if (part['thought'] === true) return noteRepair(notes, 'reasoning_dropped', line, 'unsigned');
  if (typeof text === 'string') return void texts.push(text);
  if (isObject(functionCall)) {
    const { id, name, args } = functionCall;
    return void calls.push({ id: textOf(id), name: textOf(name), args: args ?? {}, partial: false });
  }
  if (isObject(functionResponse)) return void results.push(responseOf(functionResponse));
  const kind = Object.keys(part)[0]?.slice(0, 60) ?? 'part';
  noteRepair(notes, 'placeholder', line, kind);
  texts.push(kind === 'inlineData' || kind === 'fileData' ? '[image]' : `[${kind}]`);
}

function responseOf({ id, name, response }: JsonObject): ForeignResult {
  const { output, error } = isObject(response) ? response : { output: response };
  const text =
    typeof error === 'string' ? error : output === undefined ? jsonText(response) : plainText(output);
  return { call: textOf(id), name: textOf(name), text, failed: error != null };
}

function addTool(tool: JsonObject, { calls, results }: Content): void {
  const [id, name] = [textOf(tool['id']), textOf(tool['name'])];
  calls.push({ id, name, args: tool['args'] ?? {}, partial: false });
  const answers = Array.isArray(tool['result']) ? tool['result'] : [tool['result']];
  const failed = tool['status'] === 'error' || tool['status'] === 'cancelled';
  for (const answer of answers) {
    if (isObject(answer) && isObject(answer['functionResponse'])) {
      const { text } = responseOf(answer['functionResponse']);
      results.push({ call: id, name, text, failed });
    } else if (answer != null) results.push({ call: id, name, text: plainText(answer), failed });
  }
}
