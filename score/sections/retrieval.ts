import { HAS_DATA } from '../../test/support/real-logs.ts';
import { NO_DATA } from '../data-files.ts';
import { above, figure, type Figure, type Scored } from '../figure.ts';
import type { Options } from '../options.ts';
import { crossValidate, type HeldOut, type RetrievalRow, scoreRetrieval } from '../retrieval.ts';

const GOALS = { k5: 0.75, k10: 0.83, k20: 0.88 } as const;
const TEMPORAL_GOAL = 0.85;
const KEYS = ['k5', 'k10', 'k20'] as const;

/** Share of the evidence for a question that is found again in a long dialogue. */
export async function retrievalSection({ quick }: Options): Promise<Scored> {
  if (!HAS_DATA) return { figures: [], violations: [], skipped: NO_DATA };
  const rows = (await scoreRetrieval()).filter(({ file, category }) => file === 'mean' && category === '');
  const figures = rows.flatMap((row) => figuresOf(row, row.method));
  return { figures: [...figures, ...(quick ? [] : heldOutFigures(await crossValidate()))], violations: [] };
}

/** The default settings were chosen on these dialogues, so the goals are for settings chosen on the other ones. */
function heldOutFigures({ rows, chosen }: HeldOut): Figure[] {
  return rows.flatMap((row) => {
    const { file, category } = row;
    const settings = chosen.find((each) => each.file === file)?.settings;
    const note = settings && category === '' ? ` (${Object.values(settings).join(' ')})` : '';
    const of = `${file}${category === '' ? '' : `, ${category}`}, ${row.questions} questions${note}`;
    const name = `settings of the other files: ${of}`;
    if (file === 'mean' && category === '') return figuresOf(row, name, GOALS);
    return figuresOf(row, name, file === 'mean' && category === 'temporal' ? { k5: TEMPORAL_GOAL } : {});
  });
}

function figuresOf(
  row: RetrievalRow,
  name: string,
  goals: Partial<Record<(typeof KEYS)[number], number>> = {},
) {
  return KEYS.map((key) => {
    const goal = goals[key];
    return figure(
      `${name}: @${key.slice(1)}`,
      row[key],
      'recall',
      goal === undefined ? undefined : above(goal),
    );
  });
}
