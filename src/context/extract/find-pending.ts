import { type Author, type Event, isAbout, type Saying, type ToolCall } from '../../events/index.ts';
import { bare, capped, oneLine, sentencesOf } from './cut-text.ts';
import { task, type Tasks } from './task-lists.ts';
import { agentLabel, type Trusted } from '../people.ts';
import { addSaying, type Sayings, speakerOfEvent } from './sayings.ts';

const ENDED = /^(?:completed|done|cancell?ed|finished|closed|removed)$/i;
const TODO_TOOL = /todo|task_?list|checklist|plan/i;

/** The list given to a to-do tool. */
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
    if (text !== '') (ENDED.test(status) ? tasks.done : tasks.open).push(task(text));
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

const MAX_ITEM = 320;
/** Characters read of a text that becomes one line. */
const MAX_READ = 4_096;

/** A question stays open until a participant speaks who could answer it. */
export function trackQuestions(pending: Sayings, event: Event, text: string, trusted: Trusted): void {
  for (const [key, entry] of pending) if (isAnswered(entry, event)) pending.delete(key);
  for (const question of questionsOf(text)) ask(pending, event, question, trusted);
}

function ask(pending: Sayings, event: Event, question: string, trusted: Trusted): void {
  const asks = event.to.map((agent) => agentLabel(agent));
  addSaying(pending, { text: capped(question, MAX_ITEM), ...speakerOfEvent(event, trusted), asks });
}

function isAnswered(entry: Saying, { author }: Event): boolean {
  if (author.kind === 'system') return false;
  const { by, asks } = entry;
  if (!asks || (by.kind === author.kind && by.id === author.id)) return false;
  return mayAnswer(author, by.kind === 'agent', asks);
}

/** A person's question can be answered by everyone else, an agent's question by people and by the agents asked. */
function mayAnswer(author: Author, byAgent: boolean, asked: readonly string[]): boolean {
  return author.kind === 'user' || !byAgent || asked.includes(agentLabel(author.id));
}

/** Tracks open tasks between agents and people. Each is closed by the event that names its id. */
export function trackTasks(pending: Sayings, event: Event): void {
  if (!isAbout(event, 'taskOpening') && !isAbout(event, 'taskEnd')) return;
  switch (event.kind) {
    case 'delegation.opened':
      open(pending, event, delegation(event.body.delegation, ` @${event.body.assignee}: ${event.body.task}`));
      break;
    case 'delegation.completed':
    case 'delegation.aborted':
      close(pending, delegation(event.body.delegation));
      break;
    case 'approval.requested':
      open(pending, event, approval(event.body.request, ` ${event.body.tool}: ${event.body.args}`));
      break;
    case 'approval.decided':
      close(pending, approval(event.body.request));
      break;
    case 'question.answered':
      for (const [key, entry] of pending)
        if (entry.text.endsWith(`(question ${event.body.question})`)) pending.delete(key);
      break;
    case 'question': {
      // The id must stay, however long the question is.
      const id = ` (question ${event.body.question})`;
      const text = capped(oneLine(event.body.text.slice(0, MAX_READ)), Math.max(MAX_ITEM - id.length, 2));
      ask(pending, event, `${text}${id}`, null);
      break;
    }
  }
}

/** Whether an entry stands for a delegation or an approval. */
export function isTracked(text: string): boolean {
  return /^(?:delegation \S+ to|approval \S+ of) /.test(text);
}

function delegation(id: string, rest = ''): string {
  return `delegation ${id} to${rest}`;
}

function approval(id: string, rest = ''): string {
  return `approval ${id} of${rest}`;
}

function open(pending: Sayings, event: Event, item: string): void {
  addSaying(pending, {
    text: capped(oneLine(item.slice(0, MAX_READ)), MAX_ITEM),
    ...speakerOfEvent(event, null),
  });
}

function close(pending: Sayings, opening: string): void {
  for (const [key, entry] of pending) if (entry.text.startsWith(`${opening} `)) pending.delete(key);
}
