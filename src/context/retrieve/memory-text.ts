import { type AgentId, type Event, isTaskEnd } from '../../events/index.ts';
import { visibleText } from '../event-text.ts';

/**
 * The words by which an agent may find an event, or null. Only what was said counts: not calls, not results that are
 * code, data, listings or confirmations, and not notes of the runtime, which concerned their moment only. `viewer` null
 * stands for what everybody sees.
 */
export function memoryText(event: Event, viewer: AgentId | null): string | null {
  const readers = readersOf(event);
  if (readers !== null && (viewer === null || !readers.includes(viewer))) return null;
  return saidText(event);
}

/** The agents that may read what an event says; null: all of them. */
export function readersOf({ kind, author, to }: Event): readonly string[] | null {
  if (kind === 'tool.result') return author.kind === 'agent' ? [author.id] : [];
  if (kind !== 'delegation.opened' && !isTaskEnd({ kind })) return null;
  return author.kind === 'agent' ? [...to, author.id] : to;
}

/** What an event says, whoever may read it; null if it says nothing. */
export function saidText(event: Event): string | null {
  if (event.kind === 'injection' || event.kind === 'command') return null;
  if (event.kind === 'tool.result') {
    const { outcome, content } = event.body;
    return outcome === 'done' && isSaid(content) ? content : null;
  }
  return visibleText(event);
}

/** Only the beginning of a result is looked at. */
const LOOKED_AT = 4_096;
const LETTERS = /[\p{L}\p{M}\p{N}\s]/gu;
const SENTENCE_END = /[.!?:…。！？]["'”’)\]*_]*$/u;
/** A tool that reports that it did what it was asked to. */
const CONFIRMATION =
  /^(?:ok|done|success|no (?:output|matches|results|files)|(?:the |your |all )?[\p{L}\p{N}_/.~-]+(?: [\p{L}\p{N}_/.~-]+){0,3}? (?:has been|have been|was|were|is now) \p{L}+|successfully|(?:created|updated|wrote|written|saved|deleted|removed|replaced|edited|applied|added|renamed|moved|copied) )/iu;

/**
 * Whether a result is prose, like the answer of a person or a search engine. Most of its lines are sentences; a single
 * line may be a phrase ("22 °C and sunny").
 */
function isSaid(content: string): boolean {
  const text = content.slice(0, LOOKED_AT).trim();
  if (!/^[\p{L}\p{N}"'“*-]/u.test(text) || CONFIRMATION.test(text)) return false;
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  if (lines.length === 1) return text.includes(' ') && isWordy(text);
  const sentences = lines.filter((line) => isWordy(line) && SENTENCE_END.test(line.trimEnd()));
  return lengthOf(sentences) >= lengthOf(lines) * SAID_SHARE;
}

/** The least share of letters, digits and spaces in a sentence, and of sentences in a text. */
const WORDY_SHARE = 0.9;
const SAID_SHARE = 0.6;

function isWordy(line: string): boolean {
  return (line.match(LETTERS)?.length ?? 0) >= Array.from(line).length * WORDY_SHARE;
}

function lengthOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + line.length, 0);
}
