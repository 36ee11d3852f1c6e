import {
  type Event,
  handoffText,
  isAbout,
  type KindAbout,
  messageText,
  type Saying,
  taskText as assignedText,
} from '../../events/index.ts';
import { phaseSummary, taskNamed } from '../text/event-text.ts';
import { whole } from '../text/cut-text.ts';
import {
  agentLabel,
  isUntrusted,
  type People,
  personLabel,
  type Trusted,
  AT_THE_END,
} from '../text/people.ts';

/** The words of an event, without calls and results. '' for bookkeeping events. */
export function spokenText(event: Event): string {
  if (!isAbout(event, 'words') || isAbout(event, 'upkeep')) return '';
  if (isTask(event)) return taskText(event);
  switch (event.kind) {
    case 'message':
      return messageText(event.body);
    case 'step':
      return event.body.content;
    case 'injection':
      return event.body.oneStep ? '' : event.body.content;
    case 'handoff':
      return handoffText(event.body.summary);
    case 'turn.failed':
    case 'turn.aborted':
      return event.body.partial;
    case 'phase.changed':
      // The instructions of the phase are omitted, because each recipient gets its own.
      return phaseSummary(event.body);
    case 'run.directive':
      return event.body.directive;
    case 'tool.result':
      return '';
  }
}

type TaskEvent = Extract<Event, { kind: KindAbout<'taskOpening' | 'taskEnd'> }>;

function isTask(event: Event): event is TaskEvent {
  return isAbout(event, 'taskOpening') || isAbout(event, 'taskEnd');
}

function taskText(event: TaskEvent): string {
  switch (event.kind) {
    case 'question':
      return event.body.text;
    case 'question.answered':
      return event.body.content;
    case 'approval.requested':
      return event.body.args;
    case 'approval.decided':
      return '';
    case 'delegation.opened':
      return assignedText(event);
    case 'delegation.ended':
      return event.body.result;
  }
}

/**
 * The part of an event's words in which its author may demand something. Omits handoff and phase summaries, which are words
 * of others, and attachments, which are documents.
 */
export function demandingText(event: Event, text: string): string {
  if (event.kind === 'handoff' || event.kind === 'phase.changed') return '';
  if (event.kind === 'delegation.opened') return event.body.task.slice(0, text.length);
  if (event.kind !== 'message' || !event.body.attachments) return text;
  return event.body.content.slice(0, text.length);
}

/** The words of an event as quoted. A key event is described in words. */
export function quotableText(event: Event): string {
  if (!isAbout(event, 'words')) return '';
  if (isTask(event)) return quotableTask(event);
  if (isAbout(event, 'upkeep'))
    return event.kind === 'mode.changed' ? `(mode is now ${event.body.mode})` : '';
  const text = spokenText(event);
  switch (event.kind) {
    case 'handoff':
      return `(handoff)\n${text}`;
    case 'phase.changed':
      return `(phase is now ${event.body.phase}) ${text}`.trimEnd();
    case 'run.directive':
      return `(directive of run ${event.body.run}) ${text}`;
    case 'turn.failed':
    case 'turn.aborted':
      return text && `(interrupted) ${text}`;
    case 'message':
    case 'step':
    case 'injection':
    case 'tool.result':
      return text;
  }
}

function quotableTask(event: TaskEvent): string {
  switch (event.kind) {
    case 'delegation.opened':
      return `(delegation ${event.body.delegation} to @${event.body.assignee}) ${assignedText(event)}`;
    case 'delegation.ended': {
      const { outcome, result } = event.body;
      const which = `delegation ${taskNamed(event.body)}`;
      return outcome === 'cancelled'
        ? `(${which} was cancelled) ${result}`
        : `(result of ${which}) ${result}`;
    }
    case 'question':
      return `(question ${event.body.question}) ${event.body.text}`;
    case 'question.answered':
      return `(question ${event.body.question} is ${event.body.outcome}) ${event.body.content}`;
    case 'approval.requested':
      return `(approval ${event.body.request} of ${event.body.tool} requested) ${event.body.args}`;
    case 'approval.decided':
      return `(approval ${event.body.request} is ${event.body.outcome})`;
  }
}

/**
 * Bounds the characters of a log that are read for facts; a million takes some 0.3 s. Short texts are read whole, long
 * texts at both ends. If all together are too long, each author gets an equal share, so that one author's flood does not
 * crowd out the others. Deterministic on every machine.
 */
const MOST_OF_ONE = 65_536;
const MOST_IN_ALL = 8 * 1_048_576;
const HEAD_SHARE = 2 / 3;
/** Shorter pieces say nothing. */
const LEAST = 64;
/** A piece ends between words if there is a gap within this many characters. */
const WORD = 256;

type ReadLimits = (event: Event) => number;

export function readLimits(events: readonly Event[], most: number = MOST_IN_ALL): ReadLimits {
  const texts = events.map((event) => ({
    key: authorKey(event),
    size: Math.min(sizeOf(event), MOST_OF_ONE),
  }));
  const limits = fairLimits(texts, most);
  return (event) => Math.min(MOST_OF_ONE, limits(authorKey(event)));
}

/** Maximum characters to read per text of each author, by the author's key, so that all texts have at most `most`. */
export function fairLimits(
  texts: readonly { key: string; size: number }[],
  most: number,
): (key: string) => number {
  const byAuthor = new Map<string, number[]>();
  for (const { key, size } of texts) {
    const sizes = byAuthor.get(key);
    if (sizes) sizes.push(size);
    else byAuthor.set(key, [size]);
  }
  const totals = [...byAuthor.values()].map(sum);
  if (sum(totals) <= most) return () => Infinity;
  const part = equalPart(totals, most);
  const limits = new Map([...byAuthor].map(([key, sizes]) => [key, equalPart(sizes, part)]));
  return (key) => limits.get(key) ?? 0;
}

/** Reads the texts of one event in order, within the limit that they share. */
export function limitedReader(limit: number): (text: string) => string {
  let left = limit;
  return (text) => {
    const piece = readable(text, left);
    left -= piece.length;
    return piece;
  };
}

/** Beginning and end of a text, cut between words, because half a path would be another path. */
export function readable(text: string, most: number): string {
  if (text.length <= most) return text;
  if (most < LEAST) return '';
  const head = text.slice(0, Math.floor(most * HEAD_SHARE));
  const tail = text.slice(text.length - (most - head.length - 1));
  return `${whole(withoutLastWord(head))}\n${whole(withoutFirstWord(tail))}`;
}

function withoutLastWord(head: string): string {
  const gap = Math.max(head.lastIndexOf(' '), head.lastIndexOf('\n'));
  return gap > head.length - WORD ? head.slice(0, gap) : head;
}

function withoutFirstWord(tail: string): string {
  const gap = tail.slice(0, WORD).search(/[ \n]/);
  return gap === -1 ? tail : tail.slice(gap + 1);
}

/** The largest share per size, so that all have at most `most` together. What small sizes do not use goes to the others. */
function equalPart(sizes: readonly number[], most: number): number {
  let left = most;
  for (const [index, size] of sizes.toSorted((a, b) => a - b).entries()) {
    const part = left / (sizes.length - index);
    if (size > part) return Math.floor(part);
    left -= size;
  }
  return Infinity;
}

function sizeOf(event: Event): number {
  if (event.kind === 'tool.result') return event.body.content.length;
  const spoken = spokenText(event).length;
  return event.kind === 'step' ? spoken + sum(event.body.calls.map(({ args }) => args.length)) : spoken;
}

function authorKey({ author }: Event): string {
  return `${author.kind} ${author.id}`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** Sayings in order of first appearance, without duplicates per speaker. */
export type Sayings = Map<string, Saying>;

/** A list that reaches the first number of entries is cut to the second. */
const MOST_ENTRIES = 1_000;
const KEPT_ENTRIES = 500;

export function sayingsOf(entries: readonly Saying[] = []): Sayings {
  return new Map(entries.map((entry) => [keyOf(entry), entry]));
}

export function addSaying(list: Sayings, entry: Saying): void {
  if (entry.text === '') return;
  const key = keyOf(entry);
  if (list.has(key)) return;
  list.set(key, entry);
  if (list.size > MOST_ENTRIES) cut(list);
}

/** Removes the oldest entries of the authors with most entries, so that one author's flood does not remove others' words. */
function cut(list: Sayings): void {
  const sizes = new Map<string, number>();
  for (const entry of list.values()) sizes.set(authorOf(entry), (sizes.get(authorOf(entry)) ?? 0) + 1);
  const part = equalPart([...sizes.values()], KEPT_ENTRIES);
  for (const [key, entry] of list) {
    const author = authorOf(entry);
    const size = sizes.get(author) ?? 0;
    if (size <= part) continue;
    list.delete(key);
    sizes.set(author, size - 1);
  }
}

/** Key of an entry's author. */
export function authorOf({ by }: Saying): string {
  return `${by.kind} ${by.id}`;
}

export function speakerOfEvent(event: Event, trusted: Trusted): Omit<Saying, 'text'> {
  const { kind, id, name } = event.author;
  return { by: { kind, id, name }, ...(isUntrusted(trusted, event) && { untrusted: true }) };
}

/** The speaker as in a header: `Ana`, `@bo>@cy`, `Eve, not trusted`. Agents and tools begin with '@', as no person can. */
export function labelOf({ by, untrusted, asks = [] }: Saying, people: People): string {
  const target = asks.length === 0 ? '' : `>${asks.map((agent) => `@${agent}`).join(', ')}`;
  return `${nameOf(by, people)}${untrusted ? ', not trusted' : ''}${target}`;
}

function nameOf({ kind, id, name }: Saying['by'], people: People): string {
  switch (kind) {
    case 'tool':
      return `@tool ${name.replace(/[^\p{L}\p{N}_.:/-]/gu, '_').slice(0, 64)}`;
    case 'agent':
      return `@${agentLabel(id)}`;
    case 'system':
      return 'system';
    case 'user':
      return personLabel(people, { kind, id, name }, AT_THE_END);
  }
}

export function keyOf(entry: Saying): string {
  const { asks, text } = entry;
  return `${authorOf(entry)} ${asks?.join() ?? ''}\n${text}`;
}
