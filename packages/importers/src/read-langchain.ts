import { bothOf, type ForeignCall, readParts } from './parts.ts';
import {
  isObject,
  type JsonObject,
  nameOf,
  textOf,
  timeOf,
  type ImportNotes,
  noteSkip,
  type TranscriptEntry,
} from './troupe.ts';

const TYPES = new Map([
  ['human', 'user'],
  ['HumanMessage', 'user'],
  ['ai', 'assistant'],
  ['AIMessage', 'assistant'],
  ['AIMessageChunk', 'assistant'],
  ['system', 'system'],
  ['SystemMessage', 'system'],
  ['developer', 'system'],
  ['tool', 'tool'],
  ['ToolMessage', 'tool'],
  ['function', 'tool'],
  ['FunctionMessage', 'tool'],
  ['chat', 'chat'],
  ['ChatMessage', 'chat'],
  ['remove', 'remove'],
]);

/**
 * LangChain's messages in their three forms: as in LangGraph's states and servers; of `messages_to_dict`, with the fields in
 * `data`; and of `dumpd`, with `lc`, a class in `id` and the fields in `kwargs`.
 * https://python.langchain.com/api_reference/core/messages.html
 */
export function isLangchainMessage(value: unknown): value is JsonObject {
  return isObject(value) && value['role'] === undefined && shapeOf(value) !== null;
}

function shapeOf(value: JsonObject): { type: string; fields: JsonObject } | null {
  const { lc, id, kwargs, data, type } = value;
  if (lc !== undefined && Array.isArray(id) && isObject(kwargs)) return typed(id.at(-1), kwargs);
  if (isObject(data) && 'content' in data) return typed(type, data);
  return 'content' in value && value['uuid'] === undefined ? typed(type, value) : null;
}

function typed(name: unknown, fields: JsonObject): { type: string; fields: JsonObject } | null {
  const type = typeof name === 'string' ? TYPES.get(name) : undefined;
  return type === undefined ? null : { type, fields };
}

export function* readLangchainMessage(
  line: number,
  message: unknown,
  notes: ImportNotes,
): Generator<TranscriptEntry, void> {
  const shape = isObject(message) ? shapeOf(message) : null;
  if (shape === null) return;
  const { fields } = shape;
  const parts = readParts(fields['content'], { report: notes, line });
  if (parts === null) return noteSkip(notes, 'unknown_line', line, message);
  const at = timeOf(fields['created_at']) ?? timeOf(fields['timestamp']);
  const type =
    shape.type === 'chat' ? (TYPES.get(nameOf(fields['role'])) ?? nameOf(fields['role'])) : shape.type;
  switch (type) {
    case 'user':
    case 'system':
      return yield { kind: 'said', line, at, author: type, text: parts.text };
    case 'assistant': {
      // Some providers' calls are in the content too.
      const calls = bothOf(callsOf(fields), parts.calls);
      yield { kind: 'assistant', line, at, text: parts.text, calls, reasoning: null, ended: null };
      for (const result of parts.results) yield { kind: 'result', line, at, ...result };
      return;
    }
    case 'tool': {
      const [call, name] = [textOf(fields['tool_call_id']), textOf(fields['name'])];
      return yield {
        kind: 'result',
        line,
        at,
        call,
        name,
        text: parts.text,
        failed: fields['status'] === 'error',
      };
    }
    case 'remove':
      return noteSkip(notes, 'metadata', line, 'a message that was removed');
    default:
      noteSkip(notes, 'unknown_role', line, type);
  }
}

function callsOf(fields: JsonObject): ForeignCall[] {
  const listed = [fields['tool_calls'], fields['invalid_tool_calls']].flatMap((calls) =>
    Array.isArray(calls) ? calls : [],
  );
  const calls = listed
    .filter(isObject)
    .map(({ id, name, args }) => ({ id: textOf(id), name: textOf(name), args, partial: false }));
  const extra = isObject(fields['additional_kwargs']) ? fields['additional_kwargs'] : {};
  if (calls.length > 0) return calls;
  // Versions before 0.2 have only what OpenAI sent.
  const raw = [
    ...(Array.isArray(extra['tool_calls']) ? extra['tool_calls'] : []),
    ...(extra['function_call'] ? [{ function: extra['function_call'] }] : []),
  ];
  return raw.filter(isObject).map(({ id, function: callee }) => {
    const { name, arguments: args } = isObject(callee) ? callee : {};
    return { id: textOf(id), name: textOf(name), args, partial: false };
  });
}
