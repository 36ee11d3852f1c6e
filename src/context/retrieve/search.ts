import type { Event } from '../../events/index.ts';
import { dayOf, asksWhen, datesAsked, type Span } from './dates.ts';
import { DocColumns, QUESTION_MARKS, searchDocs, SAYS } from './documents.ts';
import {
  GrowingWords,
  type IndexSegment,
  packSegment,
  type Postings,
  SEGMENT_EVENTS,
  segmentOf,
  type SegmentWords,
  StoredWords,
  unpackDocs,
} from './segments.ts';
import { wordHash, wordsOf } from '../text/words.ts';

/**
 * Full-text search over a log in memory. Events must be added in the order of the log; older ones are ignored.
 */
export interface SearchIndex {
  /** Number of searchable events, whoever may find them. */
  readonly size: number;
  /** The last seq added, searchable or not. */
  readonly upTo: number;
  add(events: readonly Event[]): void;
  /** Whether the event is searchable. */
  has(seq: number): boolean;
  answerTo(seq: number, upTo?: number): number | null;
  /**
   * Hits, best first. `now`: time of the question, ms since the epoch. Default: the time of the last event. `upTo`: events
   * with a greater seq are ignored. Default: none.
   */
  search(query: string, limit: number, options?: { now?: number; upTo?: number }): Hit[];
  /** Number of words in a segment, those of each passage counted once: the work of packing it. */
  wordsIn(segment: number): number;
  /** The events of a segment that were added, for `restore`. */
  pack(segment: number): IndexSegment;
  /** Adds a packed segment, unless the index does not end where it begins. Returns whether the segment is complete. */
  restore(packed: IndexSegment): boolean;
  clear(): void;
}

/** Creates an empty index. `viewer`: the agent that searches; null finds events that everybody may read. */
export function createSearchIndex(
  viewer: string | null = null,
  settings: RankSettings = RANK_SETTINGS,
): SearchIndex {
  let docs = new DocColumns();
  let words: SegmentWords[] = [];
  let upTo = 0;

  function growing(segment: number): GrowingWords {
    const last = words.at(-1);
    if (last instanceof GrowingWords && last.segment === segment) return last;
    const added = new GrowingWords(segment, docs.count);
    words.push(added);
    return added;
  }

  const partsOf = (segment: number) => words.filter((some) => some.segment === segment);

  return {
    get size() {
      return docs.count;
    },
    get upTo() {
      return upTo;
    },
    add(events) {
      for (const event of events) {
        if (event.seq <= upTo) continue;
        upTo = event.seq;
        for (const doc of searchDocs(event)) {
          growing(segmentOf(event.seq)).add(docs.count, doc.words);
          docs.push(doc);
        }
      }
    },
    has: (seq) => docs.numberOf(seq) !== null,
    answerTo: (seq, last = Infinity) => answerTo(docs, seq, { viewer, upTo: last }),
    search(query, limit, { now, upTo: last = Infinity } = {}) {
      const today = dayOf(now ?? (docs.ats[docs.countUpTo(last) - 1] ?? 0) * 1_000);
      const postingsOf = (word: number) => words.flatMap((some) => some.of(word) ?? []);
      const scope = { viewer, upTo: last, limit };
      return rank({ docs, postingsOf }, parseQuestion(query, today), scope, settings);
    },
    wordsIn: (segment) => partsOf(segment).reduce((sum, { size }) => sum + size, 0),
    pack(segment) {
      const [first, last] = [segment * SEGMENT_EVENTS, (segment + 1) * SEGMENT_EVENTS];
      const range = { start: docs.countUpTo(first), end: docs.countUpTo(last), upTo: Math.min(upTo, last) };
      return packSegment(docs, partsOf(segment), range);
    },
    restore(packed) {
      const segment = segmentOf(packed.upTo);
      if (upTo !== segment * SEGMENT_EVENTS) return false;
      words.push(new StoredWords(segment, docs.count, packed));
      docs.append(unpackDocs(packed));
      upTo = packed.upTo;
      return upTo === (segment + 1) * SEGMENT_EVENTS;
    },
    clear() {
      docs = new DocColumns();
      words = [];
      upTo = 0;
    },
  };
}

/** Number of events after a question among which its answer may be, and the maximum pause before the answer. */
const ANSWER_WITHIN = 6;
const ANSWER_WITHIN_SECONDS = 3_600;
const QUESTION = SAYS.indexOf('question');
const MESSAGE = SAYS.indexOf('message');

/** Whether a text asks for something. Then even hits that have little in common with it are worth showing. */
export function isAsking(text: string): boolean {
  return asksWhen(text) || [...QUESTION_MARKS].some((mark) => text.includes(mark));
}

/** The answer to a question: the next message of another author that is not a question. Null for all other events. */
function answerTo(docs: DocColumns, seq: number, { viewer, upTo }: Scope): number | null {
  const asked = docs.numberOf(seq);
  if (asked === null || docs.says[asked] !== QUESTION) return null;
  const isVisible = docs.visibility(viewer);
  const end = Math.min(docs.countUpTo(upTo), asked + 1 + ANSWER_WITHIN);
  for (let number = asked + 1; number < end; number += 1) {
    const pause = (docs.ats[number] ?? 0) - (docs.ats[asked] ?? 0);
    const isAnswer =
      docs.says[number] === MESSAGE &&
      docs.speakers[number] !== docs.speakers[asked] &&
      pause <= ANSWER_WITHIN_SECONDS &&
      isVisible[docs.readers[number] ?? 0] === true;
    if (isAnswer) return docs.seqs[number] ?? null;
  }
  return null;
}

/** Puts the answer of each found question before it. An old question resembles a new one most, but answers nothing. */
export function answersFirst(
  hits: readonly { seq: number }[],
  answerOf: (seq: number) => number | null,
): { seq: number }[] {
  const ranked = hits.flatMap(({ seq }) => [answerOf(seq) ?? seq, seq]);
  return [...new Set(ranked)].map((seq) => ({ seq }));
}

/** Constant of reciprocal rank fusion. A larger one gives the top ranks less weight. */
const RANK_OFFSET = 10;
/**
 * Weight of the ranking by meaning relative to that by words. With equal weights, a small embedding model costs a quarter of
 * the recall (docs/contributing/score.md). With this weight it costs none, and the nearest text that shares no word is still
 * among the first dozen.
 */
const MEANING_WEIGHT = 0.5;

/** Merges the rankings by words and by meaning. Uses ranks only, because their scores cannot be compared. Ties by seq. */
export function fuseRanks(byWords: readonly { seq: number }[], byMeaning: readonly { seq: number }[]): Hit[] {
  const scores = new Map<number, number>();
  const add = (ranking: readonly { seq: number }[], weight: number) => {
    for (const [index, { seq }] of ranking.entries())
      scores.set(seq, (scores.get(seq) ?? 0) + weight / (RANK_OFFSET + index + 1));
  };
  add(byWords, 1);
  add(byMeaning, MEANING_WEIGHT);
  return [...scores]
    .map(([seq, score]) => ({ seq, score }))
    .sort((one, other) => other.score - one.score || one.seq - other.seq);
}

/** Vectors of events, compared one by one, which is fast enough for the thousands of a conversation. */
export interface VectorIndex {
  readonly size: number;
  has(seq: number): boolean;
  /** Returns false if the vector cannot be compared with the others: another length, zero, or not finite. */
  add(seq: number, vector: ArrayLike<number>): boolean;
  /** Hits by cosine, best first, ties by seq. `allows` filters events. */
  search(query: ArrayLike<number>, limit: number, allows?: (seq: number) => boolean): Hit[];
}

export function createVectorIndex(): VectorIndex {
  /** Unit vectors, so that the dot product is the cosine. */
  const vectors = new Map<number, Float32Array>();
  let dimensions: number | null = null;

  return {
    get size() {
      return vectors.size;
    },
    has: (seq) => vectors.has(seq),
    add(seq, vector) {
      const unit = unitOf(vector);
      if (!unit || (dimensions !== null && unit.length !== dimensions)) return false;
      dimensions = unit.length;
      vectors.set(seq, unit);
      return true;
    },
    search(query, limit, allows = () => true) {
      const unit = unitOf(query);
      if (!unit || unit.length !== dimensions) return [];
      return [...vectors]
        .filter(([seq]) => allows(seq))
        .map(([seq, vector]) => ({ seq, score: product(unit, vector) }))
        .sort((one, other) => other.score - one.score || one.seq - other.seq)
        .slice(0, limit);
    },
  };
}

function unitOf(vector: ArrayLike<number>): Float32Array | null {
  let squares = 0;
  for (let index = 0; index < vector.length; index += 1) squares += (vector[index] ?? 0) ** 2;
  const length = Math.sqrt(squares);
  return length > 0 && Number.isFinite(length) ? Float32Array.from(vector, (value) => value / length) : null;
}

function product(one: Float32Array, other: Float32Array): number {
  let sum = 0;
  for (let index = 0; index < one.length; index += 1) sum += (one[index] ?? 0) * (other[index] ?? 0);
  return sum;
}

/**
 * Ranks the events of a log for a question, by BM25. An event is short and depends on its surroundings ("yes, in Lisbon"
 * answers the line before), so the words of its neighbours count as its own, with a lower weight. All counts are added
 * before BM25 dampens repetition, because recall is lower with one field per neighbour.
 * - An event that not everybody may read has no neighbours, so that only its own words find it.
 * - A date in the question counts as a word of events that were said on that date or are about it.
 * - The ranking depends only on the events up to a seq, not on the parts in which their words are stored.
 * - Ties are broken by seq.
 */
export interface RankSettings {
  /** Weight of an event's words for the event after it: `question` if the event is a question, otherwise `onward`. */
  question: number;
  onward: number;
  /** Weight of an event's words for the event before it. */
  back: number;
  /** Factor of these weights for every further event, up to `reach` events away. */
  fading: number;
  reach: number;
  /** Events separated by a longer pause, ms, are not neighbours. */
  pauseMs: number;
  /** BM25: saturation of repeated words, and the penalty for long texts. */
  k1: number;
  b: number;
  /** Factor for events of a speaker named in the question. */
  named: number;
  /** Factor for events with a date, if the question asks for one. */
  dated: number;
}

/** Near a flat optimum on LoCoMo, chosen without looking at single dialogues; see `docs/contributing/score.md`. */
export const RANK_SETTINGS: RankSettings = {
  question: 0.8,
  onward: 0.6,
  back: 0.3,
  fading: 0.5,
  reach: 4,
  pauseMs: 3_600_000,
  k1: 1.2,
  b: 0.5,
  named: 1.3,
  dated: 1.2,
};

export interface Hit {
  seq: number;
  score: number;
  /** Set if the event has most of the query's rare words. Such an event is worth showing even if nothing was asked. */
  isClose?: true;
}

/** A close event has at least this share of the summed rarity of the query's words, and this many times that of a unique word. */
const CLOSE_SHARE = 0.6;
const CLOSE_WORDS = 1.4;

interface Question {
  words: readonly number[];
  /** For each date, the spans that it may mean. */
  dates: readonly (readonly Span[])[];
  asksWhen: boolean;
}

const MAX_QUERY_CHARS = 2_048;

/** Parses a question asked on the day `today`. The words of its dates do not count as its words. */
function parseQuestion(text: string, today: number): Question {
  const cut = text.slice(0, MAX_QUERY_CHARS);
  const { dates, rest } = datesAsked(cut, today);
  const words = [...new Set(wordsOf(rest).map(wordHash))];
  return { words, dates, asksWhen: asksWhen(cut) };
}

interface Corpus {
  docs: DocColumns;
  postingsOf(word: number): Iterable<Postings>;
}

interface Scope {
  viewer: string | null;
  /** Events with a greater seq are ignored. */
  upTo: number;
}

function rank(
  corpus: Corpus,
  question: Question,
  { viewer, upTo, limit }: Scope & { limit: number },
  settings = RANK_SETTINGS,
): Hit[] {
  const { docs } = corpus;
  const ranking = new Ranking(docs, { viewer, upTo }, settings);
  for (const word of question.words) ranking.addWord(corpus.postingsOf(word));
  for (const spans of question.dates) ranking.addDate(spans);
  return ranking.best(question, limit);
}

class Ranking {
  readonly #docs: DocColumns;
  readonly #settings: RankSettings;
  /** Events from this number on are ignored. */
  readonly #count: number;
  readonly #isVisible: readonly boolean[];
  readonly #pause: number;
  /** Weights by distance; index 0 is the event itself. */
  readonly #onward: { question: number[]; other: number[] };
  readonly #back: number[];
  readonly #total: number;
  readonly #meanLength: number;
  readonly #scores: Float64Array;
  /** Counts of the current word by event; all zero between words. */
  readonly #counts: Float64Array;
  /** Summed rarity of the query's words that each event has. `#asked`: that of all words of the query. */
  readonly #held: Float64Array;
  #asked = 0;

  constructor(docs: DocColumns, { viewer, upTo }: Scope, settings: RankSettings) {
    this.#docs = docs;
    this.#settings = settings;
    this.#count = docs.countUpTo(upTo);
    this.#isVisible = docs.visibility(viewer);
    this.#pause = settings.pauseMs / 1_000;
    const { question, onward, back, fading, reach } = settings;
    const faded = (weight: number) =>
      Array.from({ length: reach + 1 }, (_, distance) =>
        distance === 0 ? 1 : weight * fading ** (distance - 1),
      );
    this.#onward = { question: faded(question), other: faded(onward) };
    this.#back = faded(back);
    let total = 0;
    let length = 0;
    for (let number = 0; number < this.#count; number += 1) {
      if (!this.#sees(number)) continue;
      total += 1;
      length += docs.lengths[number] ?? 0;
    }
    this.#total = total;
    const around = faded(onward + back).reduce((sum, weight) => sum + weight, 0);
    this.#meanLength = (length / Math.max(1, total)) * around;
    this.#scores = new Float64Array(this.#count);
    this.#counts = new Float64Array(this.#count);
    this.#held = new Float64Array(this.#count);
  }

  addWord(parts: Iterable<Postings>): void {
    const counts = this.#counts;
    const touched: number[] = [];
    let holders = 0;
    const add = (number: number, count: number) => {
      const known = counts[number] ?? 0;
      if (known === 0) touched.push(number);
      counts[number] = known + count;
    };
    for (const { base, docs, counts: held } of parts) {
      for (let index = 0; index < docs.length; index += 1) {
        const holder = base + (docs[index] ?? 0);
        if (holder >= this.#count) break;
        if (!this.#sees(holder)) continue;
        holders += 1;
        this.#spread(holder, held[index] ?? 0, add);
      }
    }
    const { k1, b } = this.#settings;
    const rarity = this.#rarityOf(touched.length);
    const ownRarity = this.#rarityOf(holders);
    this.#asked += ownRarity;
    for (const number of touched) {
      this.#held[number] = (this.#held[number] ?? 0) + ownRarity;
      const count = counts[number] ?? 0;
      counts[number] = 0;
      const length = this.#lengthOf(number) / this.#meanLength;
      const dampened = (count * (k1 + 1)) / (count + k1 * (1 - b + b * length));
      this.#scores[number] = (this.#scores[number] ?? 0) + rarity * dampened;
    }
  }

  /** Adds a date. Events of the date, by their own words or their time, score as if they had a word of this rarity once. */
  addDate(spans: readonly Span[]): void {
    const found: number[] = [];
    for (let number = 0; number < this.#count; number += 1) {
      if (this.#sees(number) && spans.some((span) => this.#isOf(number, span))) found.push(number);
    }
    const rarity = this.#rarityOf(found.length);
    this.#asked += rarity;
    for (const number of found) {
      this.#scores[number] = (this.#scores[number] ?? 0) + rarity;
      this.#held[number] = (this.#held[number] ?? 0) + rarity;
    }
  }

  best({ words, asksWhen: isTimed }: Question, limit: number): Hit[] {
    const { named, dated } = this.#settings;
    const isAsked = this.#docs.names.map((name) =>
      wordsOf(name).some((word) => words.includes(wordHash(word))),
    );
    const best = new Best(limit);
    for (let number = 0; number < this.#count; number += 1) {
      const score = this.#scores[number] ?? 0;
      if (score === 0 || !this.#isBestPassage(number)) continue;
      const isNamed = isAsked[this.#docs.speakers[number] ?? 0] === true;
      const isDated = isTimed && this.#datesOf(number).start < this.#datesOf(number).end;
      const seq = this.#docs.seqs[number] ?? 0;
      const hit = { seq, score: score * (isNamed ? named : 1) * (isDated ? dated : 1) };
      best.add(this.#isClose(number) ? { ...hit, isClose: true } : hit);
    }
    return best.hits;
  }

  #isClose(number: number): boolean {
    const held = this.#held[number] ?? 0;
    return held >= this.#asked * CLOSE_SHARE && held >= this.#rarityOf(1) * CLOSE_WORDS;
  }

  /** Whether no other passage of the same event scores better, so that an event is found once. */
  #isBestPassage(number: number): boolean {
    const { seqs } = this.#docs;
    const score = this.#scores[number] ?? 0;
    for (let at = number - 1; at >= 0 && seqs[at] === seqs[number]; at -= 1)
      if ((this.#scores[at] ?? 0) >= score) return false;
    for (let at = number + 1; at < this.#count && seqs[at] === seqs[number]; at += 1)
      if ((this.#scores[at] ?? 0) > score) return false;
    return true;
  }

  #sees(number: number): boolean {
    return this.#isVisible[this.#docs.readers[number] ?? 0] === true;
  }

  /** Adds the count of a word in an event to that event and to its neighbours. */
  #spread(holder: number, count: number, add: (number: number, count: number) => void): void {
    add(holder, count);
    const onward = this.#onwardOf(holder);
    for (let distance = 1; distance < onward.length; distance += 1) {
      const next = holder + distance;
      const last = holder - distance;
      if (this.#areNeighbours(holder, next)) add(next, count * (onward[distance] ?? 0));
      if (this.#areNeighbours(holder, last)) add(last, count * (this.#back[distance] ?? 0));
    }
  }

  #lengthOf(number: number): number {
    const { lengths } = this.#docs;
    let sum = lengths[number] ?? 0;
    for (let distance = 1; distance < this.#back.length; distance += 1) {
      const next = number + distance;
      const last = number - distance;
      if (this.#areNeighbours(number, next)) sum += (lengths[next] ?? 0) * (this.#back[distance] ?? 0);
      if (this.#areNeighbours(number, last))
        sum += (lengths[last] ?? 0) * (this.#onwardOf(last)[distance] ?? 0);
    }
    return sum;
  }

  #onwardOf(number: number): number[] {
    const says = SAYS[this.#docs.says[number] ?? 0];
    return says === 'question' ? this.#onward.question : this.#onward.other;
  }

  #areNeighbours(one: number, other: number): boolean {
    if (other < 0 || other >= this.#count) return false;
    const { ats, readers } = this.#docs;
    const pause = Math.abs((ats[one] ?? 0) - (ats[other] ?? 0));
    return readers[one] === 0 && readers[other] === 0 && pause <= this.#pause;
  }

  #rarityOf(held: number): number {
    return Math.log(1 + (this.#total - held + 0.5) / (held + 0.5));
  }

  #isOf(number: number, { from, to }: Span): boolean {
    const { ats, dateFroms, dateTos } = this.#docs;
    const day = Math.floor((ats[number] ?? 0) / 86_400);
    if (from <= day && day <= to) return true;
    const { start, end } = this.#datesOf(number);
    // An event about a whole year is not about a single day of it.
    const longest = Math.max(MONTH_DAYS, to - from);
    for (let index = start; index < end; index += 1) {
      const first = dateFroms[index] ?? 0;
      const last = dateTos[index] ?? 0;
      if (first <= to && from <= last && last - first <= longest) return true;
    }
    return false;
  }

  #datesOf(number: number): { start: number; end: number } {
    const { dateEnds } = this.#docs;
    return { start: number === 0 ? 0 : (dateEnds[number - 1] ?? 0), end: dateEnds[number] ?? 0 };
  }
}

const MONTH_DAYS = 31;

/** The best hits, in order. Hits must be added by ascending seq, so that the earlier of two equal hits comes first. */
class Best {
  readonly hits: Hit[] = [];
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(hit: Hit): void {
    const { hits } = this;
    const { score } = hit;
    if (hits.length >= this.#limit && score <= (hits.at(-1)?.score ?? Infinity)) return;
    let place = hits.length;
    while (place > 0 && (hits[place - 1]?.score ?? 0) < score) place -= 1;
    hits.splice(place, 0, hit);
    if (hits.length > this.#limit) hits.pop();
  }
}
