import type { Clock } from '../../../base/clock.ts';
import { slicesOf } from '../../../base/slices.ts';
import { createSearchIndex, type SearchIndex } from '../../../context/retrieve/search.ts';
import { type IndexSegment, SEGMENT_EVENTS, segmentOf } from '../../../context/retrieve/segments.ts';
import { type AgentId, type Event, isErasure } from '../../../events/index.ts';
import type { ConversationKey } from '../../../store/store.ts';
import type { Checkpoints, Place } from '../../log/read-log.ts';

/** The stored segments of a conversation's index. They have every event, whoever may find it, so all its agents share them. */
export interface StoredSegments {
  /** Minimum events for which storing is worth it. */
  readonly least: number;
  /** Maximum words of a segment, those of each passage counted once. A larger one is not stored, and neither are later ones. */
  readonly mostWords: number;
  load(segment: number): Promise<IndexSegment | null>;
  /** The place of an event; null if the log has no such event. */
  mark(seq: number): Promise<Place | null>;
  save(segment: number, place: Place, content: IndexSegment): void;
}

/** At most some 12 MB of text, which MongoDB takes in one document, and some 50 ms of packing. */
const MOST_WORDS = 1_200_000;

export function storedSegments(folds: Checkpoints, log: ConversationKey): StoredSegments {
  const subjectOf = (segment: number) => `memory:${segment}`;
  return {
    least: folds.least,
    mostWords: MOST_WORDS,
    async load(segment) {
      const found = await folds.load(log, subjectOf(segment));
      return found ? (found.parts[0] as IndexSegment) : null;
    },
    mark: (seq) => folds.mark(log, seq),
    save: (segment, place, content) => folds.save(log, subjectOf(segment), place, [content]),
  };
}

interface Extension {
  /** The events after a seq, in pages. */
  pages: (after: number) => AsyncIterable<readonly Event[]>;
  /** Seq of the last of these events. Infinity: not known. */
  upTo: number;
  segments: StoredSegments | null;
  /** Called with parts of the pages, each of which takes some milliseconds. */
  onPart: (part: readonly Event[]) => void;
  /** Called if the index is built again from the first event. */
  onClear: () => void;
  isClosed: () => boolean;
}

export interface StoredIndex {
  readonly index: SearchIndex;
  /** Adds the events after `after`, by default those after the last one that the index has. */
  extend(extension: Extension, after?: number): Promise<void>;
  /** Resolves when nothing is being added or stored. */
  settled(): Promise<void>;
}

/** Tokens of events that are indexed in one slice: some 10 ms. */
const PART_TOKENS = 32_768;
const MOST_TOKENS_OF_ONE = 65_536;

/**
 * An agent's index of a conversation, made of stored segments and of the events after them. Owns the index, and which of its
 * segments are stored.
 *  1. Extensions run one after the other, so that no event is left out.
 *  2. If words were erased, or if the conversation was begun anew, it is built again from the first event.
 *  3. A stored segment has the events up to its place and no others. It is stored behind the search, if at least
 *     `StoredSegments.least` events are not yet.
 */
export function createStoredIndex(
  agent: AgentId,
  { clock, onWarning }: { clock: Clock; onWarning: (error: unknown, where: string) => void },
): StoredIndex {
  const index = createSearchIndex(agent);
  /** The last event of the index when it was extended or restored last. */
  let place: Place | null = null;
  let stored = 0;
  let isTooLarge = false;
  let last: Promise<unknown> = Promise.resolve();

  function clear({ onClear }: Extension): void {
    index.clear();
    [place, stored, isTooLarge] = [null, 0, false];
    onClear();
  }

  async function isOfLog({ segments }: Extension): Promise<boolean> {
    return !segments || !place || (await segments.mark(place.seq))?.mark === place.mark;
  }

  async function restore({ segments, upTo, isClosed }: Extension): Promise<void> {
    if (!segments || index.upTo > 0 || upTo < segments.least) return;
    for (let segment = 0; !isClosed(); segment += 1) {
      const packed = await segments.load(segment);
      if (!packed || !index.restore(packed)) break;
    }
    stored = index.upTo;
    if (stored > 0) place = await segments.mark(stored);
  }

  async function extend(extension: Extension, after: number, isFresh = false): Promise<void> {
    const { pages, upTo, segments, onPart, isClosed } = extension;
    if (!(await isOfLog(extension))) clear(extension);
    if (!isFresh) await restore(extension);
    const before = index.upTo;
    const from = Math.min(before, after);
    if (from >= upTo) return;
    for await (const page of pages(from)) {
      if (isClosed()) return;
      if (before > 0 && page.some((event) => event.seq > before && erases(event))) {
        clear(extension);
        return extend(extension, 0, true);
      }
      await inParts(clock, page, (part) => {
        index.add(part);
        onPart(part);
      });
    }
    if (index.upTo > (place?.seq ?? 0)) place = (await segments?.mark(index.upTo)) ?? null;
  }

  async function store({ segments, isClosed }: Extension): Promise<void> {
    if (!segments || !place || isTooLarge || index.upTo - stored < segments.least) return;
    for (let segment = segmentOf(stored + 1); segment <= segmentOf(index.upTo); segment += 1) {
      await slicesOf(clock).next();
      if (isClosed()) return;
      const end = (segment + 1) * SEGMENT_EVENTS;
      const at = end < index.upTo ? await segments.mark(end) : place;
      isTooLarge = index.wordsIn(segment) > segments.mostWords;
      if (isTooLarge) return;
      if (at) segments.save(segment, at, index.pack(segment));
    }
    stored = index.upTo;
  }

  return {
    index,
    extend(extension, after = Infinity) {
      const extended = last.then(() => extend(extension, after));
      // The caller learns of an extension that fails.
      last = extended.then(
        () => store(extension).catch((error: unknown) => onWarning(error, 'memory index')),
        () => undefined,
      );
      return extended;
    },
    settled: async () => void (await last),
  };
}

function erases(event: Event): boolean {
  return event.kind === 'command' && isErasure(event);
}

/** Adds a page in parts. Lets other work run between two parts. */
async function inParts(
  clock: Clock,
  page: readonly Event[],
  add: (part: readonly Event[]) => void,
): Promise<void> {
  let [from, tokens] = [0, 0];
  for (const [at, event] of page.entries()) {
    tokens += Math.min(event.tokens, MOST_TOKENS_OF_ONE);
    if (tokens < PART_TOKENS) continue;
    add(page.slice(from, at + 1));
    [from, tokens] = [at + 1, 0];
    await slicesOf(clock).next();
  }
  if (from < page.length) add(page.slice(from));
}
