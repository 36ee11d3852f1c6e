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
  type TranscriptRecord,
} from './troupe.ts';

/**
 * ChatGPT's export, `conversations.json`: a tree of messages per conversation, by `mapping`; `current_node` ends its active branch.
 * https://help.openai.com/en/articles/7260999-how-do-i-export-my-chatgpt-history-and-data
 */
export async function* readChatGpt(
  records: AsyncIterable<TranscriptRecord>,
  report: ImportNotes,
): AsyncGenerator<TranscriptEntry, void> {
  for await (const { line, value } of records) {
    const mapping = isObject(value) ? value['mapping'] : null;
    if (!isObject(value) || !isObject(mapping)) {
      noteSkip(report, 'unknown_line', line, value);
      continue;
    }
    // The export lists the newest conversation first, so only its id identifies it in the next export.
    yield { kind: 'begin', name: textOf(value['conversation_id']) ?? textOf(value['id']), alone: true };
    const active = activeOf(mapping, value['current_node']);
    for (const [id, node] of Object.entries(mapping)) {
      if (!active.has(id) && isObject(node) && isSaid(node['message']))
        noteSkip(report, 'other_branch', line, textIn(node['message'], line, null));
    }
    for (const node of [...active.values()].toReversed())
      if (isObject(node['message'])) yield* readMessage(node['message'], line, report);
  }
}

/** The nodes from the current one to the root. Without a current node, they start from the last one that has text. */
function activeOf(mapping: JsonObject, current: unknown): Map<string, JsonObject> {
  const last = Object.entries(mapping).findLast(([, node]) => isObject(node) && isSaid(node['message']));
  const active = new Map<string, JsonObject>();
  for (
    let id = typeof current === 'string' && Object.hasOwn(mapping, current) ? current : last?.[0];
    id !== undefined && !active.has(id);
  ) {
    const node = Object.hasOwn(mapping, id) ? mapping[id] : null;
    if (!isObject(node)) break;
    active.set(id, node);
    id = textOf(node['parent']) ?? undefined;
  }
  return active;
}

function isSaid(message: unknown): message is JsonObject {
  return isObject(message) && !isHidden(message) && textIn(message, 0, null).trim() !== '';
}

function isHidden(message: JsonObject): boolean {
  return (
    isObject(message['metadata']) && message['metadata']['is_visually_hidden_from_conversation'] === true
  );
}

function* readMessage(
  message: JsonObject,
  line: number,
  report: ImportNotes,
): Generator<TranscriptEntry, void> {
  const author = isObject(message['author']) ? message['author'] : {};
  const at = timeOf(message['create_time']);
  const text = textIn(message, line, report);
  // Settings of the program, and places where a branch begins.
  if (isHidden(message) || text.trim() === '') return noteSkip(report, 'metadata', line, author['role']);
  switch (author['role']) {
    case 'user':
    case 'system':
      return yield { kind: 'said', line, at, author: author['role'], text };
    case 'assistant': {
      const to = textOf(message['recipient']) ?? 'all';
      const calls =
        to === 'all'
          ? []
          : [
              {
                id: textOf(message['id']),
                name: to,
                args: text.trimStart().startsWith('{') ? text : { input: text },
                partial: false,
              },
            ];
      return yield {
        kind: 'assistant',
        line,
        at,
        text: to === 'all' ? text : '',
        calls,
        reasoning: null,
        ended: null,
      };
    }
    case 'tool':
      return yield {
        kind: 'result',
        line,
        at,
        call: null,
        name: textOf(author['name']),
        text,
        failed: isFailed(message),
      };
    default:
      noteSkip(report, 'unknown_role', line, author['role']);
  }
}

function isFailed({ content, metadata }: JsonObject): boolean {
  const outcome =
    isObject(metadata) && isObject(metadata['aggregate_result'])
      ? metadata['aggregate_result']['status']
      : null;
  return (
    outcome === 'failed_with_in_kernel_exception' ||
    (isObject(content) && content['content_type'] === 'system_error')
  );
}

/** The text of a message. `report` null: without notes. */
function textIn({ content }: JsonObject, line: number, report: ImportNotes | null): string {
  if (!isObject(content)) return typeof content === 'string' ? content : '';
  switch (content['content_type']) {
    case 'thoughts':
    case 'reasoning_recap':
      if (report) noteRepair(report, 'reasoning_dropped', line, 'unsigned');
      return '';
    case 'user_editable_context':
    case 'model_editable_context':
      return '';
  }
  if (!Array.isArray(content['parts'])) return textOf(content['text']) ?? textOf(content['result']) ?? '';
  return content['parts']
    .map((part) => partText(part, line, report))
    .filter((text) => text !== '')
    .join('\n');
}

function partText(part: unknown, line: number, report: ImportNotes | null): string {
  if (typeof part === 'string') return part;
  if (!isObject(part)) return part == null ? '' : jsonText(part);
  const type = textOf(part['content_type']) ?? 'part';
  // Spoken text has a transcript beside the sound.
  const text = textOf(part['text']);
  if (text !== null) return text;
  if (report) noteRepair(report, 'placeholder', line, type);
  return type.startsWith('image') ? '[image]' : `[${type.slice(0, 60)}]`;
}
