import { RUNTIME } from './text/marks.ts';

/**
 * Removes marks of Troupe that a model copied from its prompt into its answer. Small models do that, and copy their own copies
 * again in the next turn. The words between marks stay.
 *  C1  Marks are removed at the beginning of a line, and closing tags also at the end of a line. Elsewhere they stay, because
 *      the text may be about them.
 *  C2  Code blocks stay unchanged, for agents that work on texts with such marks.
 *  C3  A mark without a number is removed only if it is the agent's own name before its words. Otherwise words in the name of
 *      another speaker would become the agent's own.
 *  C4  In the plain framing, the head of the agent's own words and that of the runtime's words are removed too.
 *  C5  The result does not depend on how the answer is cut into pieces. Text is held back only while it may begin a mark.
 */
export class AnswerCleaner {
  readonly #own: string;
  readonly #framing: 'marked' | 'plain';
  /** It is decided whether the line begins with a mark. */
  #isOpen = false;
  /** A mark was removed from the line. */
  #isCut = false;
  /** Text held back because it may be a mark, or a part of one. */
  #held = '';
  /** The beginning of the shown line, long enough to tell whether a code block begins or ends. */
  #line = '';
  /** The opening fence of the current code block; null outside. */
  #code: string | null = null;
  /** Keys of the removed marks, whose closing tags are removed too. */
  readonly #opened = new Set<string>();

  /** `own`: the agent's name in prompts, without the `@`. `framing`: how prompts show who says what. */
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

  /** Returns the text that was held back. More pieces may follow and continue the line. */
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
      // Blanks after a mark are removed with it, even if they come in a later piece.
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

  /** Length of a head of the plain framing at the beginning; 0 without one. */
  #headAt(isWhole: boolean): number {
    if (this.#framing !== 'plain') return 0;
    const head = HEAD.exec(this.#held);
    // Blanks after the head may still follow.
    if (!head || (!isWhole && head[0].length === this.#held.length)) return 0;
    const { name } = head.groups ?? {};
    return name === this.#own || name === RUNTIME ? head[0].length : 0;
  }

  #labelAt(isWhole: boolean): number {
    const label = LABEL.exec(this.#held);
    if (!label) return 0;
    // A following character may show that this is the text of a Markdown link.
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

  /** Removes closing tags of removed marks at the end of the line. */
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

/** Matches the first letter of every mark and head. Lines that do not match are not examined further. */
const MAY_BEGIN = /^[ \t]{0,64}(?:[<[#F]|$)/;
/** A key has a digit, while `<summary-card>` may be an element of a page. The rules write `…` in place of a key. */
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
/** Match an incomplete mark, or blanks before one. */
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

/** Characters of a line that are examined for the fence of a code block. */
const CODE_LINE = 256;
const CODE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/;

function openingOf(line: string): string | null {
  return CODE.exec(line)?.[1] ?? null;
}

function closes(line: string, fence: string): boolean {
  const own = CODE.exec(line)?.[1];
  return own !== undefined && own.startsWith(fence) && line.trim() === own;
}

/** Maximum characters at the end of a line that are held back because of closing tags. */
const MAX_TAIL = 512;
const MAX_TAG = 40;
const BLANK = /[ \t\r]/;
const IN_TAG = /[^<>\s]/;

/** Index from which on a line may be only blanks and closing tags. Searches from the end, because a pattern would be slow. */
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
