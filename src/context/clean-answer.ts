import { RUNTIME } from './text/marks.ts';

/**
 * Takes marks of Troupe away that a model has copied into its answer from its prompt: small models do, and copy their own
 * copies again in the next turn. The words between marks stay.
 *  C1  Marks count at the beginning of a line, and their closing tags at the end of one too. Elsewhere somebody talks about them.
 *  C2  Code blocks stay as they are, for agents that work on texts with such marks.
 *  C3  Of other marks without a number, only the agent's own name in front of its words goes: what it writes in another's
 *      name is not made its own.
 *  C4  In the plain framing the head of its own words goes as well, and that of the runtime's.
 *  C5  Pieces give what the whole gives: a piece waits only while it may be the beginning of a mark.
 */
export class AnswerCleaner {
  readonly #own: string;
  readonly #framing: 'marked' | 'plain';
  /** The beginning of the line is decided. */
  #isOpen = false;
  /** Of the line: a mark was taken away. */
  #isCut = false;
  /** What may be a mark, or the end of one. */
  #held = '';
  /** What is shown of the line, as far as it tells whether a code block begins or ends. */
  #line = '';
  /** The fence of the code block. */
  #code: string | null = null;
  /** Keys of the marks that were taken away: their ends follow. */
  readonly #opened = new Set<string>();

  /** `own`: how the agent is named in prompts, without the `@`. `framing`: how they tell who says what. */
  constructor(own: string, framing: 'marked' | 'plain' = 'marked') {
    this.#own = own;
    this.#framing = framing;
  }

  push(piece: string): string {
    let shown = '';
    for (let from = 0; from < piece.length;) {
      const end = piece.indexOf('\n', from);
      shown += this.#add(piece.slice(from, end === -1 ? piece.length : end));
      if (end === -1) break;
      shown += this.#endLine('\n');
      from = end + 1;
    }
    return shown;
  }

  /** What waits. The line goes on if more words follow. */
  end(): string {
    const shown = this.#rest();
    this.#isOpen ||= shown !== '';
    return shown;
  }

  #add(text: string): string {
    if (this.#code !== null) return this.#show(text);
    this.#held += text;
    if (!this.#isOpen) {
      if (this.#isCut || MAY_BEGIN.test(this.#held)) {
        this.#cutMarks(false);
        if (this.#mayBeginMark()) return '';
      }
      this.#isOpen = true;
    }
    const tail = this.#opened.size === 0 ? this.#held.length : tailOf(this.#held);
    const shown = this.#held.slice(0, tail);
    this.#held = this.#held.slice(tail);
    return this.#show(shown);
  }

  #endLine(lineEnd: string): string {
    const rest = this.#rest();
    const isGone = this.#isCut && this.#line.trim() === '';
    if (this.#code === null) this.#code = openingOf(this.#line);
    else if (closes(this.#line, this.#code)) this.#code = null;
    this.#isOpen = false;
    this.#isCut = false;
    this.#line = '';
    return isGone ? rest : rest + lineEnd;
  }

  #rest(): string {
    if (this.#code !== null || this.#held === '') return '';
    if (!this.#isOpen) this.#cutMarks(true);
    this.#cutEnds();
    const rest = this.#held;
    this.#held = '';
    if (!this.#isOpen && rest.trim().startsWith('#') && this.#opened.has(rest.trim())) {
      this.#isCut = true;
      return '';
    }
    return this.#isCut && rest.trim() === '' ? '' : this.#show(rest);
  }

  #show(text: string): string {
    if (this.#line.length < CODE_LINE) this.#line = (this.#line + text).slice(0, CODE_LINE);
    return text;
  }

  #cutMarks(isWhole: boolean): void {
    for (;;) {
      // Blanks behind a mark go with it, also if they come in a later piece.
      if (this.#isCut) this.#held = this.#held.replace(BLANKS, '');
      const length = this.#markAt(isWhole);
      if (length === 0) return;
      this.#held = this.#held.slice(length);
      this.#isCut = true;
    }
  }

  /** Length of the mark at the beginning, with the blanks around it. */
  #markAt(isWhole: boolean): number {
    const tag = TAG.exec(this.#held);
    const keyed = tag ?? KEYED.exec(this.#held);
    if (keyed) {
      const { name = '', key = '' } = keyed.groups ?? {};
      if (tag) this.#opened.add(`${name}-${key}`.toLowerCase());
      else this.#opened.add(`#${key}`).add(name === 'new' ? '#' : `#${key}`);
      return keyed[0].length;
    }
    return this.#headAt(isWhole) || this.#labelAt(isWhole);
  }

  /** A head of the plain framing. */
  #headAt(isWhole: boolean): number {
    if (this.#framing !== 'plain') return 0;
    const head = HEAD.exec(this.#held);
    // Blanks behind it may follow.
    if (!head || (!isWhole && head[0].length === this.#held.length)) return 0;
    const { name } = head.groups ?? {};
    return name === this.#own || name === RUNTIME ? head[0].length : 0;
  }

  #labelAt(isWhole: boolean): number {
    const label = LABEL.exec(this.#held);
    if (!label) return 0;
    // A link follows its text at once.
    if (!isWhole && label[0].length === this.#held.length) return 0;
    const { at = '', name, to = '' } = label.groups ?? {};
    return name === this.#own && at + to !== '' ? label[0].length : 0;
  }

  #mayBeginMark(): boolean {
    if (this.#opened.size > 0 && NUMBER.test(this.#held)) return true;
    if (this.#framing === 'plain' && HEAD_BEGINNINGS.some((beginning) => beginning.test(this.#held)))
      return true;
    return BEGINNINGS.some((beginning) => beginning.test(this.#held));
  }

  /** Closing tags of marks that were opened, at the end of the line. */
  #cutEnds(): void {
    for (;;) {
      const at = this.#held.lastIndexOf('<');
      const closing = at === -1 ? null : CLOSING.exec(this.#held.slice(at));
      if (!closing?.[1] || !this.#opened.has(closing[1].toLowerCase())) return;
      this.#held = this.#held.slice(0, at).trimEnd();
      this.#isCut = true;
    }
  }
}

/** The whole answer without the marks. */
export function cleanAnswer(text: string, own: string, framing: 'marked' | 'plain' = 'marked'): string {
  const cleaner = new AnswerCleaner(own, framing);
  return cleaner.push(text) + cleaner.end();
}

/** The first letters of all marks and heads. Of other lines no more is read. */
const MAY_BEGIN = /^[ \t]{0,64}(?:[<[#F]|$)/;
/** A key has a digit: `<summary-card>` is an element of somebody's page. `…` stands for it in the rules. */
const TAG =
  /^[ \t]{0,64}<\/?(?<name>msg|missed|handoff|reminder|summary|transcript)-(?<key>(?=[a-f]*\d)[\da-f]{4,16}|…|\.\.\.)>[ \t]*/i;
const KEYED =
  /^[ \t]{0,64}\[(?<name>@|new|reminder|late result of )(?:[^[\]\n#]|#(?!\d{6}\])){0,160}#(?<key>\d{6})\][ \t]*/;
const LABEL =
  /^[ \t]{0,64}\[(?<at>@?)(?<name>[\w.:-]{1,64})(?<to>>[^[\]\n]{1,160})?(?: [\dTZ:-]{1,24})?\](?![([:])[ \t]*/;
const HEAD = /^[ \t]{0,64}From @?(?<name>[\w.-]{1,64})(?:,? [^:\n()]{1,160})?(?: \([\d :-]{5,16}\))?:[ \t]*/;
const HEAD_BEGINNINGS = [
  /^[ \t]{0,64}(?:F|Fr|Fro|From|From @?[\w.-]{0,64},?)$/,
  /^[ \t]{0,64}From @?[\w.-]{1,64}(?:,? [^:\n()]{0,160})?(?: \([\d :-]{0,16}\)?)?(?::[ \t]{0,64})?$/,
];
const BLANKS = /^[ \t\r]+/;
/** The beginning of a mark that is not whole, or blanks in front of one. */
const BEGINNINGS = [
  /^[ \t]{0,64}(?:<\/?(?:[a-z]{0,10}|[a-z]{3,10}-(?:[\da-f]{0,16}|…|\.{1,3})))?$/i,
  /^[ \t]{0,64}\[(?:@|new|reminder|late result of )[^[\]\n]{0,256}$/,
  /^[ \t]{0,64}\[late [result of]{0,10}$/,
  /^[ \t]{0,64}\[[\w.:-]{0,64}(?:>[^[\]\n]{0,160})?(?: [\dTZ:-]{0,24})?$/,
  /^[ \t]{0,64}\[@?[\w.:-]{1,64}(?:>[^[\]\n]{1,160})?(?: [\dTZ:-]{1,24})?\][ \t]{0,64}$/,
];
const NUMBER = /^[ \t]{0,64}#\d{0,6}[ \t\r]{0,64}$/;
const CLOSING =
  /^<\/((?:msg|missed|handoff|reminder|summary|transcript)-(?:[\da-f]{4,16}|…|\.\.\.))>[ \t\r]{0,64}$/i;

/** More of a line is not looked at for the fence of a code block. */
const CODE_LINE = 256;
const CODE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/;

function openingOf(line: string): string | null {
  return CODE.exec(line)?.[1] ?? null;
}

function closes(line: string, fence: string): boolean {
  const own = CODE.exec(line)?.[1];
  return own !== undefined && own.startsWith(fence) && line.trim() === own;
}

/** Longest end of a line that waits for its closing tags. */
const MAX_TAIL = 512;
const MAX_TAG = 40;
const BLANK = /[ \t\r]/;
const IN_TAG = /[^<>\s]/;

/** Where the end begins that may be blanks and closing tags. Read from the end: a pattern would try every beginning. */
function tailOf(line: string): number {
  const first = Math.max(0, line.length - MAX_TAIL);
  let at = line.length;
  for (let before = at + 1; at < before;) {
    before = at;
    while (at > first && BLANK.test(line[at - 1] ?? '')) at -= 1;
    let tag = line[at - 1] === '>' ? at - 1 : at;
    const least = Math.max(first, tag - MAX_TAG);
    while (tag > least && IN_TAG.test(line[tag - 1] ?? '')) tag -= 1;
    if (tag > first && line[tag - 1] === '<') at = tag - 1;
  }
  return at;
}
