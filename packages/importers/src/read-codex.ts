import { type BranchNode, createHold, noteLeft } from './branches.ts';
import { joinSteps } from './parts.ts';
import {
  isObject,
  type JsonObject,
  textOf,
  timeOf,
  addNotes,
  type ImportNotes,
  noteSkip,
  type TranscriptEntry,
  type TranscriptRecord,
} from './troupe.ts';
import { readOpenAiMessage, readItem } from './read-openai.ts';

/**
 * Rollouts of Codex: one `{timestamp, type, payload}` per line. `response_item` has what the model was sent and answered;
 * `event_msg` tells the terminal the same, and which turns were undone; `compacted` is a summary of everything before it.
 * https://github.com/openai/codex/blob/main/codex-rs/protocol/src/protocol.rs (`RolloutLine`)
 */
export async function* readCodex(
  records: AsyncIterable<TranscriptRecord>,
  report: ImportNotes,
): AsyncGenerator<TranscriptEntry, void> {
  const nodes = await readNodes(records, report);
  yield { kind: 'begin', name: null, alone: true };
  yield* joinSteps(toldOf(nodes, report), report);
}

async function readNodes(
  records: AsyncIterable<TranscriptRecord>,
  report: ImportNotes,
): Promise<BranchNode[]> {
  const hold = createHold();
  const nodes: BranchNode[] = [];
  for await (const { line, value, size } of records) {
    const payload = isObject(value) ? value['payload'] : null;
    if (!isObject(value) || !isObject(payload)) {
      noteSkip(report, 'unknown_line', line, value);
      continue;
    }
    const notes: ImportNotes = { repaired: [], skipped: [] };
    const entries = [...readLine(line, value, payload, notes)];
    const isPrompt = entries.some((entry) => entry.kind === 'said' && entry.author === 'user');
    const node: BranchNode = {
      line,
      id: null,
      parent: undefined,
      kind: isPrompt ? 'prompt' : 'step',
      take: '',
      entries,
      notes,
    };
    hold(node, size);
    if (value['type'] === 'event_msg' && payload['type'] === 'thread_rolled_back')
      undo(nodes, payload['num_turns'], report);
    nodes.push(node);
  }
  return nodes;
}

/** Removes the last turns again. */
function undo(nodes: BranchNode[], turns: unknown, report: ImportNotes): void {
  for (let left = typeof turns === 'number' ? turns : 0; left > 0 && nodes.length > 0;) {
    const node = nodes.pop();
    if (!node) return;
    noteLeft(node, report);
    if (node.kind === 'prompt') left -= 1;
  }
}

async function* toldOf(
  nodes: readonly BranchNode[],
  report: ImportNotes,
): AsyncGenerator<TranscriptEntry, void> {
  for (const { entries, notes } of nodes) {
    addNotes(report, notes);
    yield* entries;
  }
}

function* readLine(
  line: number,
  value: JsonObject,
  payload: JsonObject,
  notes: ImportNotes,
): Generator<TranscriptEntry, void> {
  const at = timeOf(value['timestamp']);
  switch (value['type']) {
    case 'response_item':
      return yield* readResponseItem(line, at, payload, notes);
    case 'compacted': {
      const text = textOf(payload['message']) ?? '';
      // A summary that is encrypted for its vendor has no text.
      if (text === '') return noteSkip(notes, 'summary', line, 'it has no words');
      return yield { kind: 'summary', line, at, text, keptFrom: line, files: { read: [], modified: [] } };
    }
    case 'event_msg':
      if (payload['type'] === 'turn_aborted') return yield aborted(line, at);
      return noteSkip(notes, 'metadata', line, payload['type']);
    default:
      noteSkip(notes, 'metadata', line, value['type']);
  }
}

function aborted(line: number, at: number | null): TranscriptEntry {
  return {
    kind: 'assistant',
    line,
    at,
    text: '',
    calls: [],
    reasoning: null,
    ended: { how: 'aborted', message: '' },
  };
}

function* readResponseItem(
  line: number,
  at: number | null,
  item: JsonObject,
  notes: ImportNotes,
): Generator<TranscriptEntry, void> {
  if (typeof item['role'] !== 'string') return yield* readItem(line, item, notes, at);
  for (const entry of readOpenAiMessage(line, item, notes)) {
    const isOfProgram = entry.kind === 'said' && entry.author === 'user' && PROGRAM.test(entry.text);
    yield 'at' in entry ? { ...entry, at, ...(isOfProgram && { author: 'system' as const }) } : entry;
  }
}

/** Text that Codex writes under the person's name: the environment, and instructions from files. */
const PROGRAM =
  /^\s*(?:<(?:environment_context|user_instructions|permissions|turn_aborted|skill|user_shell_command|INSTRUCTIONS|collaboration_mode)\b|# AGENTS\.md instructions)/;
