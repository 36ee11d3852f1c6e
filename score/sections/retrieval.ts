import { HAS_DATA } from '../../test/support/real-logs.ts';
import { NO_DATA } from '../data-files.ts';
import { above, figure, type Figure, type Scored } from '../figure.ts';
import type { Options } from '../options.ts';
import { crossValidate, LOCOMO_FILES, type RetrievalRow, scoreRetrieval } from '../retrieval.ts';

/** The result of plain BM25 on documents of a turn with its neighbours. */
const GOALS = { k5: 0.57, k10: 0.66, k20: 0.74 } as const;

/** Share of the evidence for a question that is found again in a long dialogue. */
export async function retrievalSection({ quick }: Options): Promise<Scored> {
  if (!HAS_DATA) return { figures: [], violations: [], skipped: NO_DATA };
  const rows = await scoreRetrieval();
  // The settings were chosen on these dialogues, so leaving out each in turn shows their value on others.
  const heldOut = quick ? [] : await crossValidate();
  const means = [...rows, ...heldOut].filter(({ file }) => file === 'mean');
  return { figures: means.flatMap(figuresOf), violations: [] };
}

function figuresOf({ method, ...row }: RetrievalRow): Figure[] {
  const isBaseline = method.startsWith('BM25');
  const name = method === 'cross-validated' ? 'troupe, settings chosen on the other dialogues' : method;
  return (['k5', 'k10', 'k20'] as const).map((key) =>
    figure(
      `${name}: recall@${key.slice(1)}, mean of ${LOCOMO_FILES.length}`,
      row[key],
      'recall',
      isBaseline ? undefined : above(GOALS[key]),
    ),
  );
}
