import type { AgentId, Event } from '../../events/index.ts';
import { dateOf } from '../turn-input.ts';
import { memoryText } from './memories.ts';
import { wordsOf } from './words.ts';

/**
 * Full-text search over the events that one agent may see, ranked by BM25. An event is short and depends on what
 * was said around it ("yes, in Lisbon" answers the line before), so the words of its neighbours count as its own, with
 * a lower weight. All are added up before BM25 dampens repetition: recall is lower with one field per neighbour.
 * - Grows at the end only: events come in the order of the log, and older ones are ignored.
 * - Ties are broken by seq, so that the same events and question always give the same ranking.
 */
export interface SearchIndex {
  /** Number of searchable events. */
  readonly size: number;
  /** The last seq added, searchable or not. */
  readonly upTo: number;
  add(events: readonly Event[]): void;
  /** Whether the event is searchable. */
  has(seq: number): boolean;
  /** The answer to a question: the next message of another author that is not a question. Null for all other events. */
  answerTo(seq: number): number | null;
  /** Best first. */
  search(query: string, limit: number): Hit[];
}

export interface Hit {
  seq: number;
  score: number;
}

export interface SearchSettings {
  /** Weights of a word in the events after it, the next one first: an answer depends on its question. */
  onward: readonly number[];
  /** The same for the events before it, in equal number. */
  back: readonly number[];
  /** Events separated by a longer pause are no neighbours. */
  pauseMs: number;
  /** BM25: saturation of repeated words, and the penalty for long texts. */
  k1: number;
  b: number;
  /** Factor for events of a speaker named in the query. */
  named: number;
}

/** Tuned on LoCoMo. The best settings for two of its dialogues do about as well on the third: `score/retrieval.ts`. */
export const SEARCH_SETTINGS: SearchSettings = {
  onward: [0.8, 0.5],
  back: [0.6, 0.3],
  pauseMs: 3_600_000,
  k1: 0.9,
  b: 0.75,
  named: 1.3,
};

/** Only the beginning of a long text is indexed. */
const MAX_INDEXED_CHARS = 16_384;
const MAX_QUERY_CHARS = 2_048;

/** Events searched for an answer after a question. */
const ANSWER_WITHIN = 6;

/** An event. Its number is its place in the index. */
interface Doc {
  seq: number;
  at: number;
  speaker: string;
  says: 'question' | 'message' | 'other';
  /** Number of its own words, and of all words with the weighted ones of its neighbours. */
  own: number;
  length: number;
}

/** The events with a word, ascending by number, and how often it occurs in each. */
interface Postings {
  docs: number[];
  counts: number[];
}

const NOWHERE: Postings = { docs: [], counts: [] };

export function createSearchIndex(viewer: AgentId | null = null, settings = SEARCH_SETTINGS): SearchIndex {
  return new Bm25Index(viewer, settings);
}

class Bm25Index implements SearchIndex {
  upTo = 0;
  readonly #viewer: AgentId | null;
  readonly #settings: SearchSettings;
  readonly #docs: Doc[] = [];
  /** Numbers by seq. */
  readonly #numbers = new Map<number, number>();
  readonly #postings = new Map<string, Postings>();
  /** The words of each speaker's name. */
  readonly #speakers = new Map<string, ReadonlySet<string>>();
  /** Length of all events, neighbours included. */
  #totalLength = 0;

  constructor(viewer: AgentId | null, settings: SearchSettings) {
    this.#viewer = viewer;
    this.#settings = settings;
  }

  get size(): number {
    return this.#docs.length;
  }

  has(seq: number): boolean {
    return this.#numbers.has(seq);
  }

  answerTo(seq: number): number | null {
    const number = this.#numbers.get(seq) ?? -1;
    const question = this.#docs[number];
    if (question?.says !== 'question') return null;
    const next = this.#docs.slice(number + 1, number + 1 + ANSWER_WITHIN);
    const answer = next.find(
      ({ says, speaker, at }) =>
        says === 'message' && speaker !== question.speaker && at - question.at <= this.#settings.pauseMs,
    );
    return answer?.seq ?? null;
  }

  add(events: readonly Event[]): void {
    for (const event of events) {
      if (event.seq <= this.upTo) continue;
      this.upTo = event.seq;
      this.#addOne(event);
    }
  }

  search(query: string, limit: number): Hit[] {
    const words = new Set(wordsOf(query.slice(0, MAX_QUERY_CHARS)));
    const isAsked = ([, name]: [string, ReadonlySet<string>]) => [...name].some((word) => words.has(word));
    const asked = new Set([...this.#speakers].filter(isAsked).map(([speaker]) => speaker));
    const scores = this.#scoresOf(words);
    const hits: Hit[] = [];
    for (const [number, { seq, speaker }] of this.#docs.entries()) {
      const score = (scores[number] ?? 0) * (asked.has(speaker) ? this.#settings.named : 1);
      if (score > 0) hits.push({ seq, score });
    }
    return hits.sort((one, other) => other.score - one.score || one.seq - other.seq).slice(0, limit);
  }

  #addOne(event: Event): void {
    const text = memoryText(event, this.#viewer);
    if (text === null) return;
    const { seq, at, author } = event;
    const words = [...wordsOf(text.slice(0, MAX_INDEXED_CHARS)), ...wordsOf(dateWords(at))];
    if (!this.#speakers.has(author.name)) this.#speakers.set(author.name, new Set(wordsOf(author.name)));
    const number = this.#docs.length;
    const own = words.length;
    this.#docs.push({ seq, at, speaker: author.name, says: saysOf(event, text), own, length: 0 });
    this.#numbers.set(seq, number);
    for (const word of words) this.#post(word, number);
    this.#lengthen(number, own);
    for (let distance = 1; distance <= this.#settings.onward.length; distance += 1) {
      const other = this.#neighbour(number, distance);
      if (!other) continue;
      this.#lengthen(number, this.#weightOf(distance) * other.own);
      this.#lengthen(number - distance, this.#weightOf(-distance) * own);
    }
  }

  #lengthen(number: number, words: number): void {
    const doc = this.#docs[number];
    if (doc) doc.length += words;
    this.#totalLength += words;
  }

  #post(word: string, number: number): void {
    const known = this.#postings.get(word);
    if (!known) this.#postings.set(word, { docs: [number], counts: [1] });
    else if (known.docs.at(-1) === number) known.counts.push((known.counts.pop() ?? 0) + 1);
    else {
      known.docs.push(number);
      known.counts.push(1);
    }
  }

  /** Weight of a word in the event `offset` places after its own. */
  #weightOf(offset: number): number {
    const { onward, back } = this.#settings;
    if (offset === 0) return 1;
    return (offset > 0 ? onward[offset - 1] : back[-offset - 1]) ?? 0;
  }

  /** The event `before` places earlier, unless a pause separates them. */
  #neighbour(number: number, before: number): Doc | null {
    const doc = this.#docs[number];
    const other = this.#docs[number - before];
    return doc && other && Math.abs(doc.at - other.at) <= this.#settings.pauseMs ? other : null;
  }

  /** How often a word occurs in or near each event in its reach; by number. */
  #countsOf(word: string): { numbers: number[]; counts: Float64Array } {
    const { onward, back } = this.#settings;
    const numbers: number[] = [];
    const counts = new Float64Array(this.#docs.length);
    const { docs: holders, counts: held } = this.#postings.get(word) ?? NOWHERE;
    for (const [index, holder] of holders.entries()) {
      for (let offset = -back.length; offset <= onward.length; offset += 1) {
        const number = holder + offset;
        if (!this.#neighbour(Math.max(number, holder), Math.abs(offset))) continue;
        const known = counts[number] ?? 0;
        if (known === 0) numbers.push(number);
        counts[number] = known + this.#weightOf(offset) * (held[index] ?? 0);
      }
    }
    return { numbers, counts };
  }

  #scoresOf(words: Iterable<string>): Float64Array {
    const { k1, b } = this.#settings;
    const all = this.#docs.length;
    const scores = new Float64Array(all);
    const meanLength = this.#totalLength / all;
    for (const word of words) {
      const { numbers, counts } = this.#countsOf(word);
      const rarity = Math.log(1 + (all - numbers.length + 0.5) / (numbers.length + 0.5));
      for (const number of numbers) {
        const count = counts[number] ?? 0;
        const length = (this.#docs[number]?.length ?? 0) / meanLength;
        const dampened = (count * (k1 + 1)) / (count + k1 * (1 - b + b * length));
        scores[number] = (scores[number] ?? 0) + rarity * dampened;
      }
    }
    return scores;
  }
}

function saysOf({ kind }: Event, text: string): Doc['says'] {
  if (kind !== 'message') return 'other';
  return isQuestion(text) ? 'question' : 'message';
}

/** Question marks of any script, including the full-width and the Arabic one. */
function isQuestion(text: string): boolean {
  return QUESTION_MARKS.has(text.trimEnd().at(-1) ?? '');
}

const QUESTION_MARKS = new Set(['?', '\uFF1F', '\u061F', '\u037E']);

const MONTHS = 'January February March April May June July August September October November December'.split(
  ' ',
);

function dateWords(at: number): string {
  const date = dateOf(at);
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
}

/**
 * An old question is nearest to a new one but says nothing, so its answer goes before it. On LoCoMo this raises
 * recall@10 from 0.826 to 0.836 (`score/retrieval.ts`).
 */
export function answersFirst<H extends { seq: number }>(
  hits: readonly H[],
  index: Pick<SearchIndex, 'answerTo'>,
): { seq: number }[] {
  const ranked = hits.flatMap(({ seq }) => [index.answerTo(seq) ?? seq, seq]);
  return [...new Set(ranked)].map((seq) => ({ seq }));
}

/** Constant of reciprocal rank fusion: a larger one gives the top ranks less weight. */
const RANK_OFFSET = 60;

/** Fuses several rankings by rank alone, since their scores cannot be compared. Ties by seq. */
export function fuseRanks(rankings: readonly (readonly { seq: number }[])[], offset = RANK_OFFSET): Hit[] {
  const scores = new Map<number, number>();
  for (const ranking of rankings) {
    for (const [index, { seq }] of ranking.entries()) {
      scores.set(seq, (scores.get(seq) ?? 0) + 1 / (offset + index + 1));
    }
  }
  return [...scores]
    .map(([seq, score]) => ({ seq, score }))
    .sort((one, other) => other.score - one.score || one.seq - other.seq);
}
