import { bare, capped, sentencesOf } from '../text/cut-text.ts';
import { DONE, DONE_HEADING, OPEN_HEADING, PENDING, TODO_MARK } from './lexicon.ts';

export interface Tasks {
  open: string[];
  /** Texts that say that a task is done: the task itself, or a sentence that names it. */
  done: string[];
}

const MAX_PENDING = 320;
const MAX_PER_EVENT = 60;
const MAX_HEADING = 100;
/** Maximum characters of a line. Longer lines are data. */
const MAX_LINE = 4_000;

const ITEM = /^([-*+•]|\d{1,3}[.)])\s+(\S.*)$/;
const BOX = /^\[([ xX✓✔])\]\s+(\S.*)$/;
const STRUCK = /^~~(.{1,600})~~/;
const TICKED = /^(?:✅|✔️?|☑️?)|(?:✅|✔️?|☑️?)$/u;
const DONE_AT_END =
  /(?:done|completed?|finished|erledigt|fertig|fait|hecho|feito|fatto|готово|完成|完了)\)?[.!]?$/iu;
const BEFORE_DONE = /[-–—:(]$/;
const OPEN_CELL =
  /^(?:⬜|☐|⏳|🔲|🚧|todo|to do|open|pending|not started|in progress|next|offen|ausstehend|à faire|pendiente|pendente|da fare|не сделано|待办|未完成|未完了)\.?$/iu;
const DONE_CELL =
  /^(?:✅|✔️?|☑️?|done|completed?|finished|closed|fixed|erledigt|fertig|fait|terminé|hecho|completado|feito|concluído|fatto|готово|сделано|完成|已完成|完了)\.?$/iu;

type Scope = 'open' | 'done' | null;
interface Item {
  indent: number;
  text: string;
  list: string[];
}

interface Place {
  scope: Scope;
  /** Whether the paragraph or list under the heading has begun. */
  isBegun: boolean;
  item: Item | null;
}

/**
 * Tasks in a text: items under a heading of work, open boxes, rows of a table with a state, and sentences about what is left
 * to do. Headings are not tasks. A nested item belongs to its parent unless it has its own box.
 */
export function tasksOf(text: string): Tasks {
  const tasks: Tasks = { open: [], done: [] };
  const place: Place = { scope: null, isBegun: false, item: null };
  for (const line of text.split('\n')) readLine(line, place, tasks);
  endItem(place);
  return { open: [...new Set(tasks.open)], done: [...new Set(tasks.done)] };
}

function readLine(written: string, place: Place, tasks: Tasks): void {
  const line = written.trim();
  if (line === '') return;
  if (line.length > MAX_LINE) {
    addSentences(line, null, tasks);
    return;
  }
  const found = itemOf(line, place.scope);
  if (found) {
    readItem(found, written.length - written.trimStart().length, place, tasks);
    return;
  }
  endItem(place);
  if (isHeading(line)) {
    Object.assign(place, { scope: scopeOf(line, tasks), isBegun: false });
    return;
  }
  if (place.isBegun) place.scope = null;
  place.isBegun = true;
  addSentences(line, place.scope, tasks);
}

function readItem(found: Found, indent: number, place: Place, tasks: Tasks): void {
  const { item } = place;
  if (item && isNested(found, indent, item)) item.text = joined(item, found.text);
  else {
    endItem(place);
    if (found.list !== null) place.item = { indent, text: found.text, list: tasks[found.list] };
  }
  place.isBegun = true;
}

function endItem(place: Place): void {
  if (place.item) add(place.item.list, place.item.text);
  place.item = null;
}

interface Found {
  text: string;
  /** The list that the item belongs to; null for an item that is not a task. */
  list: keyof Tasks | null;
  hasState: boolean;
}

/** A list item or a row of a table; null for any other line. */
function itemOf(line: string, scope: Scope): Found | null {
  if (line.startsWith('|')) return rowOf(line, scope);
  const marked = ITEM.exec(line);
  const words = marked?.[2] ?? line;
  const box = BOX.exec(words);
  if (box) return { text: box[2] ?? '', list: box[1] === ' ' ? 'open' : 'done', hasState: true };
  if (!marked) return null;
  const ended = endedIn(words);
  if (ended !== undefined) return { text: ended, list: 'done', hasState: true };
  return { text: words, list: scope ?? listFor(words), hasState: false };
}

function endedIn(words: string): string | undefined {
  return STRUCK.exec(words)?.[1] ?? ticked(words) ?? saidDone(words);
}

/** The task in an item of the form `Task - done`, `Task: done` or `Task (done)`. */
function saidDone(words: string): string | undefined {
  const said = DONE_AT_END.exec(words);
  const before = said ? words.slice(0, said.index).trimEnd() : '';
  if (!BEFORE_DONE.test(before)) return undefined;
  const text = before.slice(0, -1).trimEnd();
  return text.length < 3 ? undefined : text;
}

function listFor(words: string): Found['list'] {
  if (isPending(words)) return isHeading(words) ? null : 'open';
  return DONE.test(words) ? 'done' : null;
}

function ticked(words: string): string | undefined {
  const text = words.replace(TICKED, '').trim();
  return text === words || text === '' ? undefined : text;
}

function rowOf(line: string, scope: Scope): Found {
  const cells = line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
  const state = cells.findIndex((cell) => OPEN_CELL.test(cell) || DONE_CELL.test(cell));
  const text = cells.filter((cell, at) => at !== state && cell !== '').join(' ');
  const isRule = cells.every((cell) => /^:?-*:?$/.test(cell));
  if (isRule || state === -1) return { text, list: null, hasState: true };
  const list = DONE_CELL.test(cells[state] ?? '') ? 'done' : 'open';
  return { text, list: scope === 'done' ? 'done' : list, hasState: true };
}

function isNested({ hasState }: Found, indent: number, item: Item): boolean {
  return indent > item.indent && !hasState;
}

function joined({ text }: Item, nested: string): string {
  return text.length > MAX_PENDING
    ? text
    : `${text.replace(/[:.]$/, '')}${text.includes(': ') ? ';' : ':'} ${nested}`;
}

const BOLD = /^(?:\*\*|__)[^*_]{2,100}(?:\*\*|__):?$/;

/** A line that announces what follows: a Markdown heading, bold words alone, or a short line with a colon at its end. */
function isHeading(line: string): boolean {
  return (
    line.length <= MAX_HEADING &&
    (/^#{1,6} /.test(line) || BOLD.test(line) || /[:：](?:\*\*|__)?$/.test(line))
  );
}

function scopeOf(line: string, tasks: Tasks): Scope {
  const words = line.replace(/[*_#:：]+/g, ' ').trim();
  if (OPEN_HEADING.test(words) || PENDING.test(line) || TODO_MARK.test(line)) return 'open';
  if (!DONE_HEADING.test(words)) return null;
  if (IDS.test(words)) tasks.done.push(words);
  return 'done';
}

/** Adds the sentences of the first paragraph under a heading of open work. */
function addSentences(line: string, scope: Scope, tasks: Tasks): void {
  for (const sentence of sentencesOf(line)) {
    const words = bare(sentence);
    if (scope === 'open' || isPending(words)) add(tasks.open, words);
    else if (scope === 'done' || ticked(words) !== undefined || DONE.test(words)) add(tasks.done, words);
  }
}

function add(list: string[], text: string): void {
  if (list.length < MAX_PER_EVENT && text.trim() !== '') list.push(task(text));
}

function isPending(line: string): boolean {
  return line.length >= 6 && (TODO_MARK.test(line) || PENDING.test(line));
}

/** The text of a task as lists show it. */
export function task(text: string): string {
  return capped(text.trim(), MAX_PENDING, PENDING);
}

/** Numbers of tasks: `WP15`, `PROJ-7`, and `WP1-WP13` for several. */
const ID = /(?<![\w-])([A-Z]{1,8}-?)(\d{1,6})(?:\s?(?:[-–—]|to|bis)\s?(?:[A-Z]{1,8}-?)?(\d{1,6}))?(?![\w-])/g;
const IDS = new RegExp(ID.source);
const LEADING_ID = /^[*_`~]{0,3}([A-Z]{1,8}-?\d{1,6})(?![\w])/;

export function taskId(text: string): string | null {
  return LEADING_ID.exec(text)?.[1] ?? null;
}

/** Returns a test of whether the texts show a task as done: by its number, by its text, or by a sentence with all its words. */
export function closedBy(done: readonly string[]): (task: string) => boolean {
  const same = new Set(done.map(plain));
  const words = done.map((text) => new Set(stemsOf(text)));
  const ranges = done.flatMap((text) =>
    Array.from(text.matchAll(ID), ([, letters = '', from = '', to = from]) => ({
      letters,
      from: +from,
      to: +to,
    })),
  );
  return (open) => {
    if (same.has(plain(open))) return true;
    const id = taskId(open);
    if (id !== null) {
      const [, letters = '', number = ''] = /^(\D+)(\d+)$/.exec(id) ?? [];
      return ranges.some(
        (range) => range.letters === letters && range.from <= +number && +number <= range.to,
      );
    }
    const [verb = '', ...rest] = stemsOf(open);
    if (rest.length === 0) return false;
    return words.some((said) => rest.every((stem) => said.has(stem)) && (rest.length > 1 || said.has(verb)));
  };
}

function plain(text: string): string {
  return text
    .replace(/[*_`~]/g, '')
    .trim()
    .toLowerCase();
}

const STEM = 4;

/** The beginnings of the longer words of a text, so that "writing" and "written" are equal. */
function stemsOf(text: string): string[] {
  const words = plain(text).match(/[\p{L}\p{N}][\p{L}\p{N}_./-]*/gu) ?? [];
  return words.filter((word) => word.length > 3 || /\d/.test(word)).map((word) => word.slice(0, STEM));
}
