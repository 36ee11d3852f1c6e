import type { DocColumns, DocSegment } from './documents.ts';

/** Some events with a word, ascending, and its count in each. The number of an event is `base` plus an element of `docs`. */
export interface Postings {
  base: number;
  docs: ArrayLike<number>;
  counts: ArrayLike<number>;
}

/** Seqs per segment. An index is stored in segments, so that a longer log writes no more of them again. */
export const SEGMENT_EVENTS = 4_096;

/** The number of the segment that an event belongs to, from 0. */
export function segmentOf(seq: number): number {
  return Math.floor((seq - 1) / SEGMENT_EVENTS);
}

/** The words of some events of one segment. */
export interface SegmentWords {
  readonly segment: number;
  /** Number of words, those of each event counted once. */
  readonly size: number;
  of(word: number): Postings | null;
  entries(): Iterable<[word: number, held: Postings]>;
}

/** Words to which events are added. Numbers are relative to `base`. */
export class GrowingWords implements SegmentWords {
  readonly segment: number;
  size = 0;
  readonly #base: number;
  readonly #words = new Map<number, { docs: number[]; counts: number[] }>();

  constructor(segment: number, base: number) {
    this.segment = segment;
    this.#base = base;
  }

  /** Adds an event. Events must come by ascending number. */
  add(number: number, words: ReadonlyMap<number, number>): void {
    this.size += words.size;
    for (const [word, count] of words) {
      const known = this.#words.get(word);
      if (!known) this.#words.set(word, { docs: [number - this.#base], counts: [count] });
      else {
        known.docs.push(number - this.#base);
        known.counts.push(count);
      }
    }
  }

  of(word: number): Postings | null {
    const known = this.#words.get(word);
    return known ? { base: this.#base, ...known } : null;
  }

  *entries(): Iterable<[word: number, held: Postings]> {
    for (const [word, held] of this.#words) yield [word, { base: this.#base, ...held }];
  }
}

/** Words of a stored segment, by binary search: reading them takes no time that grows with their number. */
export class StoredWords implements SegmentWords {
  readonly segment: number;
  readonly #base: number;
  readonly #words: Uint32Array;
  readonly #ends: Uint32Array;
  readonly #docs: Uint16Array | Uint32Array;
  readonly #counts: Uint8Array;

  constructor(segment: number, base: number, { words, ends, numbers, counts }: IndexSegment) {
    this.segment = segment;
    this.#base = base;
    this.#words = new Uint32Array(bytesOf(words));
    this.#ends = new Uint32Array(bytesOf(ends));
    this.#counts = new Uint8Array(bytesOf(counts));
    const bytes = bytesOf(numbers);
    const isWide = bytes.byteLength > this.#counts.length * Uint16Array.BYTES_PER_ELEMENT;
    this.#docs = isWide ? new Uint32Array(bytes) : new Uint16Array(bytes);
  }

  get size(): number {
    return this.#counts.length;
  }

  of(word: number): Postings | null {
    let low = 0;
    let high = this.#words.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#words[middle] ?? 0) < word) low = middle + 1;
      else high = middle;
    }
    return this.#words[low] === word ? this.#at(low) : null;
  }

  *entries(): Iterable<[word: number, held: Postings]> {
    for (const [at, word] of this.#words.entries()) yield [word, this.#at(at)];
  }

  #at(index: number): Postings {
    const start = index === 0 ? 0 : (this.#ends[index - 1] ?? 0);
    const end = this.#ends[index] ?? start;
    return {
      base: this.#base,
      docs: this.#docs.subarray(start, end),
      counts: this.#counts.subarray(start, end),
    };
  }
}

/** A segment of an index as plain data. Arrays are in Base64. */
export interface IndexSegment {
  /** The last seq of the segment that the index has. */
  upTo: number;
  docs: Record<Exclude<keyof DocSegment, 'names' | 'readerSets'>, string>;
  names: readonly string[];
  readerSets: readonly string[];
  /** Hashes of the words, ascending, and the end of each word's events in `numbers` and `counts`. */
  words: string;
  ends: string;
  /** Numbers of events from the beginning of the segment: 16 bits each, or 32 if there are more events. */
  numbers: string;
  counts: string;
}

/** Packs the events from `start` to before `end`, whose words are in `parts`. */
export function packSegment(
  docs: DocColumns,
  parts: readonly SegmentWords[],
  { start, end, upTo }: { start: number; end: number; upTo: number },
): IndexSegment {
  const held = new Map<number, Postings[]>();
  const size = parts.reduce((sum, part) => sum + part.size, 0);
  for (const part of parts)
    for (const [word, postings] of part.entries()) {
      const known = held.get(word);
      if (known) known.push(postings);
      else held.set(word, [postings]);
    }
  const words = Uint32Array.from(held.keys()).sort();
  const ends = new Uint32Array(words.length);
  const numbers = end - start > 0xffff ? new Uint32Array(size) : new Uint16Array(size);
  const counts = new Uint8Array(size);
  let at = 0;
  for (const [index, word] of words.entries()) {
    for (const { base, docs: some, counts: times } of held.get(word) ?? [])
      for (let each = 0; each < some.length; each += 1) {
        numbers[at] = base + (some[each] ?? 0) - start;
        counts[at] = times[each] ?? 0;
        at += 1;
      }
    ends[index] = at;
  }
  const { names, readerSets, ...columns } = docs.slice(start, end);
  return {
    upTo,
    docs: mapValues(columns, textOf),
    names,
    readerSets,
    words: textOf(words),
    ends: textOf(ends),
    numbers: textOf(numbers),
    counts: textOf(counts),
  };
}

export function unpackDocs({ docs, names, readerSets }: IndexSegment): DocSegment {
  return {
    seqs: new Uint32Array(bytesOf(docs.seqs)),
    ats: new Uint32Array(bytesOf(docs.ats)),
    lengths: new Uint16Array(bytesOf(docs.lengths)),
    says: new Uint8Array(bytesOf(docs.says)),
    speakers: new Uint16Array(bytesOf(docs.speakers)),
    readers: new Uint16Array(bytesOf(docs.readers)),
    dateEnds: new Uint32Array(bytesOf(docs.dateEnds)),
    dateFroms: new Int32Array(bytesOf(docs.dateFroms)),
    dateTos: new Int32Array(bytesOf(docs.dateTos)),
    names,
    readerSets,
  };
}

function mapValues<K extends string, A, B>(from: Record<K, A>, to: (value: A) => B): Record<K, B> {
  return Object.fromEntries(Object.entries<A>(from).map(([key, value]) => [key, to(value)])) as Record<K, B>;
}

function textOf({ buffer, byteOffset, byteLength }: ArrayBufferView): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('base64');
}

/** A copy, because an array of numbers must begin at a multiple of their size. */
function bytesOf(text: string): ArrayBuffer {
  return new Uint8Array(Buffer.from(text, 'base64')).buffer;
}
