import { type Event, type AgentId, isTaskEnd } from '../../events/index.ts';
import { datesIn, dayOf, type Span } from './dates.ts';
import { wordHash, wordsOf } from '../text/words.ts';
import { visibleText } from '../text/event-text.ts';

/** The data that an index holds for an event, or for a passage of it. */
interface SearchDoc {
  seq: number;
  /** Seconds since 1970. */
  at: number;
  speaker: string;
  says: Says;
  /** Ids of the agents that may find it; null: everybody may. */
  readers: readonly string[] | null;
  /** Count of each word, by its hash. */
  words: ReadonlyMap<number, number>;
  length: number;
  dates: readonly Span[];
}

export const SAYS = ['other', 'message', 'question'] as const;
type Says = (typeof SAYS)[number];

/** Characters of a text that are indexed, and of each passage that are searched for dates: the first ones. */
const MAX_INDEXED_CHARS = 262_144;
const MAX_DATED_CHARS = 2_048;
const MAX_DATES = 16;
/** Counts of a word are stored in a byte; a word that comes more often does not count for more. */
const MOST_OF_A_WORD = 255;
/** A text with more characters is divided into passages. */
const PASSAGE_CHARS = 2_400;

/** One document for each passage, in order; none if the event says nothing. */
export function searchDocs(event: Event): SearchDoc[] {
  const text = saidText(event);
  if (text === null || text.trim() === '') return [];
  const { seq, at, author } = event;
  const said = {
    seq,
    at: Math.max(0, Math.floor(at / 1_000)),
    speaker: author.name,
    says: saysOf(event, text),
  };
  const readers = readersOf(event);
  return passagesOf(text.slice(0, MAX_INDEXED_CHARS)).map((passage) => {
    const words = new Map<number, number>();
    let length = 0;
    for (const word of wordsOf(passage)) {
      const hash = wordHash(word);
      words.set(hash, Math.min(MOST_OF_A_WORD, (words.get(hash) ?? 0) + 1));
      length += 1;
    }
    const dates = datesIn(passage.slice(0, MAX_DATED_CHARS), dayOf(at)).slice(0, MAX_DATES);
    return { ...said, readers, words, length, dates };
  });
}

/** The passages of a text. Each ends after a line or a word, if one ends in its second half. */
export function passagesOf(text: string, most = PASSAGE_CHARS): string[] {
  const passages: string[] = [];
  let from = 0;
  while (text.length - from > most) {
    const end = endNear(text, from + most / 2, from + most);
    passages.push(text.slice(from, end));
    from = end;
  }
  passages.push(text.slice(from));
  return passages;
}

function endNear(text: string, least: number, most: number): number {
  const piece = text.slice(least, most);
  const line = Math.max(piece.lastIndexOf('\n'), piece.lastIndexOf('. '));
  const at = line < 0 ? piece.lastIndexOf(' ') : line;
  if (at >= 0) return least + at + 1;
  const unit = text.charCodeAt(most - 1);
  return unit >= 0xd800 && unit <= 0xdbff ? most - 1 : most;
}

function saysOf({ kind }: Event, text: string): Says {
  if (kind !== 'message') return 'other';
  return endsInQuestion(text) ? 'question' : 'message';
}

export function endsInQuestion(text: string): boolean {
  return QUESTION_MARKS.has(text.trimEnd().at(-1) ?? '');
}

export const QUESTION_MARKS: ReadonlySet<string> = new Set(['?', '\uFF1F', '\u061F', '\u037E']);

/** Data of some events of a log without their words, as one array per property: 16 bytes per event and 8 per date. */
export interface DocSegment {
  seqs: Uint32Array;
  /** Seconds since 1970. */
  ats: Uint32Array;
  /** Numbers of words, at most 65,535. */
  lengths: Uint16Array;
  /** Indexes in `SAYS`. */
  says: Uint8Array;
  /** Indexes in `names`. */
  speakers: Uint16Array;
  /** Indexes in `readerSets`. */
  readers: Uint16Array;
  /** Index after the last date of an event in `dateFroms` and `dateTos`. Its first date is at the previous event's value. */
  dateEnds: Uint32Array;
  dateFroms: Int32Array;
  dateTos: Int32Array;
  names: readonly string[];
  /** Sets of agent ids, each id between spaces. The first, '', stands for everybody, and the second for nobody. */
  readerSets: readonly string[];
}

const EVERYBODY = '';
const NOBODY = ' ';
const MOST = 0xffff;

/** Growing columns, to which events are appended. The number of an event is its index. */
export class DocColumns implements DocSegment {
  count = 0;
  dateCount = 0;
  seqs = new Uint32Array(64);
  ats = new Uint32Array(64);
  lengths = new Uint16Array(64);
  says = new Uint8Array(64);
  speakers = new Uint16Array(64);
  readers = new Uint16Array(64);
  dateEnds = new Uint32Array(64);
  dateFroms = new Int32Array(64);
  dateTos = new Int32Array(64);
  readonly names: string[] = [];
  readonly readerSets = [EVERYBODY, NOBODY];
  readonly #nameIds = new Map<string, number>();
  readonly #readerIds = new Map([
    [EVERYBODY, 0],
    [NOBODY, 1],
  ]);

  push({ seq, at, speaker, says, readers, length, dates }: SearchDoc): void {
    const number = this.count;
    this.#reserve(1, dates.length);
    this.seqs[number] = seq;
    this.ats[number] = at;
    this.lengths[number] = Math.min(length, MOST);
    this.says[number] = SAYS.indexOf(says);
    this.speakers[number] = this.#nameId(speaker);
    this.readers[number] = this.#readersId(keyOf(readers));
    for (const { from, to } of dates) {
      this.dateFroms[this.dateCount] = from;
      this.dateTos[this.dateCount] = to;
      this.dateCount += 1;
    }
    this.dateEnds[number] = this.dateCount;
    this.count += 1;
  }

  append(segment: DocSegment): void {
    const { length } = segment.seqs;
    const start = this.count;
    this.#reserve(length, segment.dateFroms.length);
    this.seqs.set(segment.seqs, start);
    this.ats.set(segment.ats, start);
    this.lengths.set(segment.lengths, start);
    this.says.set(segment.says, start);
    const names = segment.names.map((name) => this.#nameId(name));
    const readerSets = segment.readerSets.map((readers) => this.#readersId(readers));
    for (let index = 0; index < length; index += 1) {
      this.speakers[start + index] = names[segment.speakers[index] ?? 0] ?? 0;
      this.readers[start + index] = readerSets[segment.readers[index] ?? 0] ?? 0;
      this.dateEnds[start + index] = this.dateCount + (segment.dateEnds[index] ?? 0);
    }
    this.dateFroms.set(segment.dateFroms, this.dateCount);
    this.dateTos.set(segment.dateTos, this.dateCount);
    this.dateCount += segment.dateFroms.length;
    this.count += length;
  }

  /** A copy of the events from `start` to before `end`. */
  slice(start: number, end: number): DocSegment {
    const firstDate = start === 0 ? 0 : (this.dateEnds[start - 1] ?? 0);
    const lastDate = end === 0 ? 0 : (this.dateEnds[end - 1] ?? 0);
    return {
      seqs: this.seqs.slice(start, end),
      ats: this.ats.slice(start, end),
      lengths: this.lengths.slice(start, end),
      says: this.says.slice(start, end),
      speakers: this.speakers.slice(start, end),
      readers: this.readers.slice(start, end),
      dateEnds: this.dateEnds.slice(start, end).map((place) => place - firstDate),
      dateFroms: this.dateFroms.slice(firstDate, lastDate),
      dateTos: this.dateTos.slice(firstDate, lastDate),
      names: [...this.names],
      readerSets: [...this.readerSets],
    };
  }

  /** Number of events with a seq up to `seq`. */
  countUpTo(seq: number): number {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.seqs[middle] ?? 0) <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The number of the event, or null. */
  numberOf(seq: number): number | null {
    const number = this.countUpTo(seq) - 1;
    return this.seqs[number] === seq ? number : null;
  }

  /** For each index of `readerSets`, whether the agent may find such events. */
  visibility(viewer: string | null): boolean[] {
    return this.readerSets.map(
      (readers) => readers === EVERYBODY || (viewer !== null && readers.includes(` ${viewer} `)),
    );
  }

  #nameId(name: string): number {
    return idOf(name, this.names, this.#nameIds) ?? 0;
  }

  #readersId(readers: string): number {
    return idOf(readers, this.readerSets, this.#readerIds) ?? 1;
  }

  #reserve(docs: number, dates: number): void {
    const wanted = this.count + docs;
    if (wanted > this.seqs.length) {
      const size = Math.max(wanted, this.seqs.length * 2);
      this.seqs = grown(this.seqs, new Uint32Array(size));
      this.ats = grown(this.ats, new Uint32Array(size));
      this.lengths = grown(this.lengths, new Uint16Array(size));
      this.says = grown(this.says, new Uint8Array(size));
      this.speakers = grown(this.speakers, new Uint16Array(size));
      this.readers = grown(this.readers, new Uint16Array(size));
      this.dateEnds = grown(this.dateEnds, new Uint32Array(size));
    }
    if (this.dateCount + dates > this.dateFroms.length) {
      const size = Math.max(this.dateCount + dates, this.dateFroms.length * 2);
      this.dateFroms = grown(this.dateFroms, new Int32Array(size));
      this.dateTos = grown(this.dateTos, new Int32Array(size));
    }
  }
}

function grown<T extends Uint8Array | Uint16Array | Uint32Array | Int32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}

function keyOf(readers: readonly string[] | null): string {
  if (readers === null) return EVERYBODY;
  return readers.length === 0 ? NOBODY : ` ${readers.toSorted().join(' ')} `;
}

/** Index of the text, which is added if it is new. Null if the table is full. */
function idOf(text: string, texts: string[], ids: Map<string, number>): number | null {
  const known = ids.get(text);
  if (known !== undefined) return known;
  if (texts.length > MOST) return null;
  ids.set(text, texts.length);
  texts.push(text);
  return texts.length - 1;
}

/**
 * The words by which an agent may find an event, or null. Only speech counts: no calls, no results that are code, data,
 * listings or confirmations, and no notes of the runtime, which mattered only at their time. `viewer` null: the words that
 * everybody may read.
 */
export function memoryText(event: Event, viewer: AgentId | null): string | null {
  const readers = readersOf(event);
  if (readers !== null && (viewer === null || !readers.includes(viewer))) return null;
  return saidText(event);
}

/** Ids of the agents that may read the words of an event; null: all. */
function readersOf({ kind, author, to }: Event): readonly string[] | null {
  if (kind === 'tool.result') return author.kind === 'agent' ? [author.id] : [];
  if (kind !== 'delegation.opened' && !isTaskEnd({ kind })) return null;
  return author.kind === 'agent' ? [...to, author.id] : to;
}

/** The words of an event, regardless of who may read them; null if it has none. */
function saidText(event: Event): string | null {
  if (event.kind === 'injection' || event.kind === 'command') return null;
  if (event.kind === 'tool.result') {
    const { outcome, content } = event.body;
    return outcome === 'done' && isSaid(content) ? content : null;
  }
  return visibleText(event);
}

/** Characters of a result that are examined: the first ones. */
const LOOKED_AT = 4_096;
const LETTERS = /[\p{L}\p{M}\p{N}\s]/gu;
const SENTENCE_END = /[.!?:…。！？]["'”’)\]*_]*$/u;
/** Results that only confirm that the tool did its work. */
const CONFIRMATION =
  /^(?:ok|done|success|no (?:output|matches|results|files)|(?:the |your |all )?[\p{L}\p{N}_/.~-]+(?: [\p{L}\p{N}_/.~-]+){0,3}? (?:has been|have been|was|were|is now) \p{L}+|successfully|(?:created|updated|wrote|written|saved|deleted|removed|replaced|edited|applied|added|renamed|moved|copied) )/iu;

/**
 * Whether a result is prose, like the answer of a person or a search engine: most of its lines are sentences, or its only
 * line is a phrase ("22 °C and sunny").
 */
function isSaid(content: string): boolean {
  const text = content.slice(0, LOOKED_AT).trim();
  if (!/^[\p{L}\p{N}"'“*-]/u.test(text) || CONFIRMATION.test(text)) return false;
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  if (lines.length === 1) return text.includes(' ') && isWordy(text);
  const sentences = lines.filter((line) => isWordy(line) && SENTENCE_END.test(line.trimEnd()));
  return lengthOf(sentences) >= lengthOf(lines) * SAID_SHARE;
}

/** Minimum share of letters, digits and spaces in a sentence, and of sentences in a text. */
const WORDY_SHARE = 0.9;
const SAID_SHARE = 0.6;

function isWordy(line: string): boolean {
  return (line.match(LETTERS)?.length ?? 0) >= Array.from(line).length * WORDY_SHARE;
}

function lengthOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + line.length, 0);
}
