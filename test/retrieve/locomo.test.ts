import { beforeAll, describe, expect, test } from 'vitest';
import { scoreRetrieval, type RetrievalRow } from '../../score/retrieval.ts';
import { HAS_DATA } from '../support/real-logs.ts';

if (!HAS_DATA) console.warn('SKIPPED: the LoCoMo dialogues are not in ../shared/data');

describe.skipIf(!HAS_DATA)('evidence in long dialogues', () => {
  let rows: RetrievalRow[];
  beforeAll(async () => {
    rows = await scoreRetrieval();
  });

  test.each(['k5', 'k10', 'k20'] as const)(
    'recall at %s beats BM25 with neighbours in every dialogue',
    (k) => {
      const of = (method: string) =>
        rows.filter((row) => row.method === method && row.category === '').map((row) => row[k]);
      const baseline = of('BM25 on turns +-1');
      expect(baseline).toHaveLength(4);
      for (const [index, recall] of of('troupe').entries()) {
        expect(recall).toBeGreaterThan((baseline[index] ?? 1) + 0.05);
      }
    },
  );
});
