import { openTroupe } from '../library/create-troupe.ts';
import type { Troupe } from '../library/troupe.ts';
import type { OpenedCompany, TroupeSettings } from './company.ts';
import { createEvalClock, type EvalClock } from './eval-clock.ts';

/** Prompts contain numbers that follow from the secret of the store. */
const TEST_SECRET = 'troupe-evals';

/** A company at work, on the clock of its run. */
export interface CompanyAtWork extends AsyncDisposable {
  troupe: Troupe;
  clock: EvalClock;
}

/** When and where a company is opened. */
interface Circumstances {
  /** The data directory. Default: in memory. */
  data?: string | undefined;
  /** When its clock begins, ms since the epoch. Default: as in every test. */
  startsAt?: number | undefined;
}

/** Throws `config_invalid`. */
export async function openCompany(
  { definition, isScripted }: Pick<OpenedCompany, 'definition' | 'isScripted'>,
  settings: TroupeSettings = {},
  { data = ':memory:', startsAt }: Circumstances = {},
): Promise<CompanyAtWork> {
  const hasModels = !isScripted && settings.replay === undefined;
  const clock = createEvalClock({ stands: !hasModels, startsAt });
  const troupe = await openTroupe(definition, { ...settings, clock, data, newSecret: TEST_SECRET });
  return { troupe, clock, [Symbol.asyncDispose]: () => troupe[Symbol.asyncDispose]() };
}
