import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fuseRanks, createSearchIndex, createVectorIndex } from '../../src/context/retrieve/search.ts';
import { DocColumns } from '../../src/context/retrieve/documents.ts';
import {
  GrowingWords,
  type IndexSegment,
  packSegment,
  SEGMENT_EVENTS,
  segmentOf,
  StoredWords,
} from '../../src/context/retrieve/segments.ts';
import type { AgentId, Event } from '../../src/events/index.ts';
import { called, dialogue, said } from './said.ts';

function indexOf(events: readonly Event[], viewer: string | null = null) {
  const index = createSearchIndex(viewer as AgentId | null);
  index.add(events);
  return index;
}

function found(events: readonly Event[], query: string, limit = 10): number[] {
  return indexOf(events)
    .search(query, limit)
    .map(({ seq }) => seq);
}

const FILLER = [
  'The weather was grey.',
  'Lunch came late.',
  'Nobody minded.',
  'A bus went by.',
  'It rained.',
];

describe('search by words', () => {
  test('finds words in another form, case or accent', () => {
    const log = dialogue(...FILLER, 'We went CAMPING near Málaga with two ponies.', ...FILLER);
    expect(found(log, 'who camped?')[0]).toBe(6);
    expect(found(log, 'malaga')[0]).toBe(6);
    expect(found(log, 'a pony')[0]).toBe(6);
  });

  test.each([
    ['Japanese', '会議は来週の火曜日に東京で開きます。', '東京の会議'],
    ['Korean', '회의는 다음 주에 서울에서 열립니다.', '서울 회의'],
    ['Thai', 'การประชุมจะจัดขึ้นที่กรุงเทพ', 'กรุงเทพ'],
    ['Russian', 'Совещание состоится в Москве.', 'где совещание'],
    ['Hindi', 'बैठक दिल्ली में होगी', 'दिल्ली'],
    ['Arabic', 'الاجتماع في القاهرة', 'القاهرة'],
  ])('finds %s', (_, text, query) => {
    expect(found(dialogue(...FILLER, text, ...FILLER), query)[0]).toBe(6);
  });

  test('an answer is found by the words of its question, after the question', () => {
    const log = dialogue(...FILLER, 'Which city is the client in?', 'Lisbon.', ...FILLER, ...FILLER);
    expect(found(log, 'city of the client').slice(0, 2)).toEqual([6, 7]);
  });

  test('a message after a long pause is no neighbour', () => {
    const day = 86_400_000;
    const log = [said(1, 'Which city is the client in?', { at: 0 }), said(2, 'Good morning.', { at: day })];
    expect(found(log, 'city of the client')).toEqual([1]);
  });

  test('the author named in the question comes before others with the same words', () => {
    const log = [
      said(1, 'I booked the train.', { by: 'Ana', at: 0 }),
      said(2, 'I booked the train.', { by: 'Bob', at: 7_200_000 }),
    ];
    expect(found(log, 'What did Bob book?')).toEqual([2, 1]);
    expect(found(log, 'What did Ana book?')).toEqual([1, 2]);
  });

  test('finds by the date of a message', () => {
    const log = [3, 9, 27].map((date, index) => said(index + 1, 'Hello.', { at: Date.UTC(2025, 4, date) }));
    expect(found(log, 'What was said on 9 May 2025?')[0]).toBe(2);
  });

  test('an agent finds what its own tools said, never the calls, and nothing of others', () => {
    const log = called(1, 'coder', '{"path":"ledger.csv"}', 'balance 4711');
    const search = (viewer: string | null) => indexOf(log, viewer).search('ledger 4711', 10).length;
    expect([search('coder'), search('planner'), search(null)]).toEqual([1, 0, 0]);
  });

  test.each([
    'Successfully replaced text in src/ledger.csv.',
    'Wrote 4711 bytes to ledger.csv',
    '{"ledger":4711}',
    'ledger.csv\nindex.ts\n4711.txt',
    'const ledger = 4711;\nexport default ledger;',
  ])('a result that says nothing is no memory: %s', (result) => {
    expect(indexOf(called(1, 'coder', '{}', result), 'coder').search('ledger 4711', 10)).toEqual([]);
  });

  test('nothing is found for unknown words, for no words, and in an empty index', () => {
    expect(found(dialogue(...FILLER), 'zeppelin')).toEqual([]);
    expect(found(dialogue(...FILLER), ' the of … ')).toEqual([]);
    expect(found([], 'weather')).toEqual([]);
  });
});

const someWords = fc.array(fc.constantFrom('alpha', 'beta', 'gamma', 'delta', '東京都', 'Ünïcode'), {
  maxLength: 6,
});
const someLog = fc
  .array(fc.record({ words: someWords, pause: fc.integer({ min: 0, max: 7_200_000 }) }), { maxLength: 30 })
  .map((turns) => {
    let at = 0;
    return turns.map(({ words, pause }, index) => said(index + 1, words.join(' '), { at: (at += pause) }));
  });

describe('the index', () => {
  test('gives the same ranking for any order of insertion, and takes no event twice', () => {
    fc.assert(
      fc.property(someLog, someWords, fc.array(fc.nat(30)), (log, query, cuts) => {
        const grown = createSearchIndex();
        for (const cut of cuts) grown.add(log.slice(0, cut));
        grown.add(log);
        const whole = indexOf(log);
        expect(grown.search(query.join(' '), 10)).toEqual(whole.search(query.join(' '), 10));
        expect([grown.size, grown.upTo]).toEqual([whole.size, whole.upTo]);
      }),
    );
  });

  test('restored from packed segments, and extended, it ranks as one made of all events', () => {
    fc.assert(
      fc.property(someLog, someWords, fc.nat(30), (written, query, cut) => {
        // Some thousand seqs lie between two events, so that there are several segments.
        const log = written.map((event) => ({ ...event, seq: event.seq * 1_500 }));
        const before = indexOf(log.slice(0, cut));
        const restored = createSearchIndex();
        for (let segment = 0; segment <= segmentOf(before.upTo); segment += 1) {
          const packed = JSON.parse(JSON.stringify(before.pack(segment))) as IndexSegment;
          expect(restored.restore(packed)).toBe(before.upTo >= (segment + 1) * SEGMENT_EVENTS);
        }
        expect([restored.size, restored.upTo]).toEqual([before.size, before.upTo]);
        for (const index of [before, restored]) index.add(log);
        const whole = indexOf(log);
        for (const upTo of [Infinity, (log[cut]?.seq ?? 0) - 1]) {
          const hits = whole.search(query.join(' '), 10, { upTo });
          expect(restored.search(query.join(' '), 10, { upTo })).toEqual(hits);
          expect(hits.every(({ seq }) => seq <= upTo)).toBe(true);
        }
        // What is packed after an extension is what the whole index packs.
        const last = segmentOf(whole.upTo);
        expect(restored.pack(last)).toEqual(whole.pack(last));
      }),
    );
  });

  test('a segment with more passages than 16 bits number keeps them apart', () => {
    const docs = new DocColumns();
    const words = new GrowingWords(0, 0);
    const count = 70_000;
    const doc = { at: 0, speaker: 'Ana', says: 'message', readers: null, length: 1, dates: [] } as const;
    for (let number = 0; number < count; number += 1) {
      const held = new Map([[number % 7, 1]]);
      words.add(number, held);
      docs.push({ ...doc, seq: 1 + (number >> 5), words: held });
    }
    const packed = packSegment(docs, [words], { start: 0, end: count, upTo: 4_000 });
    const { docs: found = [] } = new StoredWords(0, 0, packed).of(3) ?? {};
    expect([found.length, found[9_999]]).toEqual([10_000, 3 + 9_999 * 7]);
  });

  test('ranks by falling score, then by seq, with no event twice', () => {
    fc.assert(
      fc.property(someLog, someWords, (log, query) => {
        const hits = indexOf(log).search(query.join(' '), 100);
        const sorted = hits.toSorted((one, other) => other.score - one.score || one.seq - other.seq);
        expect(hits).toEqual(sorted);
        expect(new Set(hits.map(({ seq }) => seq)).size).toBe(hits.length);
        expect(hits.every(({ score }) => score > 0 && Number.isFinite(score))).toBe(true);
      }),
    );
  });
});

describe('joined rankings', () => {
  const ranking = (...seqs: number[]) => seqs.map((seq) => ({ seq }));

  test('events high in both come first, ties by seq', () => {
    const fused = fuseRanks(ranking(5, 3, 9), ranking(3, 7));
    expect(fused.map(({ seq }) => seq)).toEqual([3, 5, 9, 7]);
    expect(fused[0]?.score).toBeCloseTo(1 / 12 + 0.5 / 11, 12);
    expect(fuseRanks(ranking(9), ranking(2)).map(({ seq }) => seq)).toEqual([9, 2]);
    expect(fuseRanks([], [])).toEqual([]);
  });

  test('one ranking keeps its order', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat()), (seqs) => {
        expect(fuseRanks(ranking(...seqs), []).map(({ seq }) => seq)).toEqual(seqs);
        expect(fuseRanks([], ranking(...seqs)).map(({ seq }) => seq)).toEqual(seqs);
      }),
    );
  });
});

describe('search by vectors', () => {
  test('ranks by angle, not by length, ties by seq', () => {
    const index = createVectorIndex();
    index.add(7, [0, 100]);
    index.add(2, [1, 1]);
    index.add(4, [3, 0]);
    index.add(3, [9, 0]);
    expect(index.search([1, 0], 3).map(({ seq }) => seq)).toEqual([3, 4, 2]);
    expect(index.search([1, 0], 3, (seq) => seq !== 3).map(({ seq }) => seq)).toEqual([4, 2, 7]);
  });

  test('refuses vectors that cannot be compared', () => {
    const index = createVectorIndex();
    expect([
      index.add(1, [1, 2]),
      index.add(2, [1, 2, 3]),
      index.add(3, [0, 0]),
      index.add(4, [NaN, 1]),
    ]).toEqual([true, false, false, false]);
    expect(index.size).toBe(1);
    expect(index.search([1, 2, 3], 5)).toEqual([]);
  });
});
