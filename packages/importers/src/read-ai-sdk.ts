import { type ForeignCall, type ForeignResult, plainText, sdkCall } from './parts.ts';
import {
  isObject,
  type JsonObject,
  nameOf,
  textOf,
  timeOf,
  type ImportNotes,
  noteRepair,
  noteSkip,
  type TranscriptEntry,
} from './troupe.ts';

/** A message of the AI SDK's `useChat`. */
export function isSdkMessage(value: unknown): value is JsonObject {
  if (!isObject(value) || typeof value['role'] !== 'string') return false;
  const parts = value['parts'] ?? (value['toolInvocations'] && []);
  return Array.isArray(parts) && parts.every((part) => isObject(part) && typeof part['type'] === 'string');
}

type Step = { texts: string[]; calls: ForeignCall[]; results: ForeignResult[] };

/**
 * Messages of the AI SDK's user interface, as applications store them. An answer with several steps is one message.
 * https://ai-sdk.dev/docs/reference/ai-sdk-core/ui-message
 */
export function* readSdkMessage(
  line: number,
  message: unknown,
  notes: ImportNotes,
): Generator<TranscriptEntry, void> {
  if (!isSdkMessage(message)) return;
  const metadata = isObject(message['metadata']) ? message['metadata'] : {};
  const at = timeOf(message['createdAt']) ?? timeOf(metadata['createdAt']);
  const steps = stepsOf(message, line, notes);
  const role = message['role'];
  if (role !== 'assistant') {
    if (role !== 'user' && role !== 'system') return noteSkip(notes, 'unknown_role', line, role);
    const text = steps.flatMap(({ texts }) => texts).join('\n');
    return yield { kind: 'said', line, at, author: role, text };
  }
  for (const { texts, calls, results } of steps) {
    yield { kind: 'assistant', line, at, text: texts.join('\n'), calls, reasoning: null, ended: null };
    for (const result of results) yield { kind: 'result', line, at, ...result };
  }
}

/**
 * Splits a message into steps. A step ends where the next one begins; if no step is marked, it ends with the text after its calls.
 */
function stepsOf(message: JsonObject, line: number, notes: ImportNotes): Step[] {
  const steps: Step[] = [newStep()];
  for (const part of partsOf(message)) {
    const last = steps.at(-1) ?? newStep();
    const isNext =
      part['type'] === 'step-start' ? !isEmpty(last) : part['type'] === 'text' && last.calls.length > 0;
    if (isNext) steps.push(newStep());
    addPart(steps.at(-1) ?? last, part, line, notes);
  }
  return steps.length > 1 ? steps.filter((step) => !isEmpty(step)) : steps;
}

function newStep(): Step {
  return { texts: [], calls: [], results: [] };
}

function addPart(step: Step, part: JsonObject, line: number, notes: ImportNotes): void {
  const type = nameOf(part['type']);
  if (type === 'tool-invocation' || type === 'dynamic-tool' || /^tool-./.test(type))
    return addTool(step, part);
  if (type.startsWith('data-') || type.startsWith('source')) return noteSkip(notes, 'metadata', line, type);
  switch (type) {
    case 'step-start':
      return;
    case 'text': {
      const text = textOf(part['text']);
      return text === null ? undefined : void step.texts.push(text);
    }
    case 'reasoning':
      return noteRepair(notes, 'reasoning_dropped', line, 'unsigned');
    default: {
      noteRepair(notes, 'placeholder', line, type);
      const isImage = nameOf(part['mediaType'] ?? part['mimeType']).startsWith('image');
      step.texts.push(isImage ? '[image]' : `[${type.slice(0, 60)}]`);
    }
  }
}

function isEmpty({ texts, calls }: Step): boolean {
  return texts.length === 0 && calls.length === 0;
}

/** The parts. In version 4 also the tools and the text, which are separate fields there. */
function partsOf(message: JsonObject): JsonObject[] {
  const parts = (Array.isArray(message['parts']) ? message['parts'] : []).filter(isObject);
  if (parts.length > 0) return parts;
  const tools: unknown[] = Array.isArray(message['toolInvocations']) ? message['toolInvocations'] : [];
  const content = textOf(message['content']);
  return [
    ...tools.filter(isObject).map((toolInvocation) => ({ type: 'tool-invocation', toolInvocation })),
    ...(content === null ? [] : [{ type: 'text', text: content }]),
  ];
}

/** Adds a call and its result. In version 4 they are in `toolInvocation`. */
function addTool(step: Step, part: JsonObject): void {
  const tool = isObject(part['toolInvocation']) ? part['toolInvocation'] : part;
  const call = sdkCall(tool);
  const name = call.name ?? nameOf(part['type']).replace(/^tool-/, '');
  step.calls.push({ ...call, name, args: call.args ?? tool['rawInput'] });
  const error = textOf(tool['errorText']);
  const output = tool['output'] ?? tool['result'];
  if (error === null && output === undefined) return;
  step.results.push({ call: call.id, name, text: error ?? plainText(output), failed: error !== null });
}
