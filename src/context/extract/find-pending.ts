import type { ToolCall } from '../../events/index.ts';
import { PENDING, TODO_MARK } from './lexicon.ts';
import { bare, capped, sentencesOf } from './sentences.ts';

const MAX_PENDING = 320;
const MAX_PER_EVENT = 60;
const BOX = /^(?:[-*+•]|\d{1,3}[.)])?\s*\[([ xX✓✔])\]\s+(\S.*)$/;

export interface Tasks {
  open: string[];
  done: string[];
}

/** Work that a text names as not done yet, and boxes that it shows as ticked. */
export function tasksOf(text: string): Tasks {
  const tasks: Tasks = { open: [], done: [] };
  for (const line of sentencesOf(text)) {
    const box = BOX.exec(line);
    if (box) (box[1] === ' ' ? tasks.open : tasks.done).push(task(box[2] ?? ''));
    else if (isPending(line) && tasks.open.length < MAX_PER_EVENT) tasks.open.push(task(bare(line)));
  }
  return tasks;
}

function isPending(line: string): boolean {
  return line.length >= 6 && (TODO_MARK.test(line) || PENDING.test(line));
}

function task(text: string): string {
  return capped(text.trim(), MAX_PENDING, PENDING);
}

const DONE = /^(?:completed|done|cancell?ed|finished|closed|removed)$/i;
const TODO_TOOL = /todo|task_?list|checklist|plan/i;

/** The list that a to-do tool was given. */
export function tasksOfCall({ name, args }: ToolCall): Tasks {
  const tasks: Tasks = { open: [], done: [] };
  if (!TODO_TOOL.test(name)) return tasks;
  let root: unknown;
  try {
    root = JSON.parse(args);
  } catch {
    // Without JSON there is no list.
    return tasks;
  }
  const lists = typeof root === 'object' && root !== null ? Object.values(root) : [];
  for (const item of lists.flatMap((list) => (Array.isArray(list) ? list : []))) {
    const { text, status } = readItem(item);
    if (text !== '') (DONE.test(status) ? tasks.done : tasks.open).push(task(text));
  }
  return tasks;
}

function readItem(item: unknown): { text: string; status: string } {
  if (typeof item === 'string') return { text: item, status: '' };
  if (typeof item !== 'object' || item === null) return { text: '', status: '' };
  const fields = new Map<string, unknown>(Object.entries(item));
  const text = ['content', 'text', 'task', 'title', 'step', 'description']
    .map((name) => fields.get(name))
    .find((value) => typeof value === 'string');
  const status = fields.get('status') ?? (fields.get('done') === true ? 'done' : '');
  return { text: typeof text === 'string' ? text : '', status: typeof status === 'string' ? status : '' };
}

const MAX_QUESTIONS = 3;

/** The last questions of a message, as sentences. */
export function questionsOf(text: string): string[] {
  const asked = sentencesOf(text).map(bare);
  return asked
    .filter((sentence) => /[?？]["'”’»)]*$/.test(sentence) && sentence.length > 5)
    .slice(-MAX_QUESTIONS);
}
