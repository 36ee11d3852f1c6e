import { HAS_DATA } from '../../test/support/real-logs.ts';
import { NO_DATA } from '../data-files.ts';
import { above, figure, type Scored } from '../figure.ts';
import { LOCOMO_FILES, scoreRetrieval } from '../retrieval.ts';

/** What plain BM25 reaches on documents of a turn with its neighbours. */
const GOALS = { k5: 0.57, k10: 0.66, k20: 0.74 } as const;

/** How much of the evidence for a question is found again in a long dialogue. */
export async function retrievalSection(): Promise<Scored> {
  if (!HAS_DATA) return { figures: [], violations: [], skipped: NO_DATA };
  const means = (await scoreRetrieval()).filter(({ file }) => file === 'mean');
  const figures = means.flatMap(({ method, ...row }) =>
    (['k5', 'k10', 'k20'] as const).map((key) =>
      figure(
        `${method}: recall@${key.slice(1)}, mean of ${LOCOMO_FILES.length} dialogues`,
        row[key],
        'recall',
        method === 'troupe' ? above(GOALS[key]) : undefined,
      ),
    ),
  );
  return { figures, violations: [] };
}
