import { createTestClock, openTestTroupe, type TestClock, type Troupe } from './troupe.ts';
import type { OpenedCompany, TroupeSettings } from './company.ts';

/** A company at work, on the clock of its run. */
export interface CompanyAtWork extends AsyncDisposable {
  troupe: Troupe;
  clock: TestClock;
}

/** When and where a company is opened. */
interface Circumstances {
  /** The data directory. Default: in memory. */
  data?: string | undefined;
  /** When its clock begins, ms since the epoch. Default: as in every test. */
  startsAt?: number | undefined;
}

/** Steps that bring nothing new. */
const FOREIGN_REPEATS = 10_000;

/** Throws `config_invalid`. */
export async function openCompany(
  { definition, isScripted, isForeign }: Pick<OpenedCompany, 'definition' | 'isScripted' | 'isForeign'>,
  settings: TroupeSettings = {},
  { data = ':memory:', startsAt }: Circumstances = {},
): Promise<CompanyAtWork> {
  const hasModels = !isScripted && settings.replay === undefined;
  const clock = createTestClock({ stands: !hasModels, startsAt });
  const limits = isForeign ? { maxRepeats: FOREIGN_REPEATS } : {};
  const troupe = await openTestTroupe(definition, { ...settings, clock, data, constants: { limits } });
  return { troupe, clock, [Symbol.asyncDispose]: () => troupe[Symbol.asyncDispose]() };
}
