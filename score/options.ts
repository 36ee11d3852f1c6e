/** The options of a run. */
export interface Options {
  /** Fewer logs and rounds, to try things out: do not quote the figures of such a run. */
  quick: boolean;
  fuzzRounds: number;
  seed: number;
  /** Prints progress; never part of the result. */
  note: (line: string) => void;
}

export const USAGE =
  'npm run score:context -- [--only section,...] [--json FILE] [--quick] [--strict] [--fuzz-rounds N] [--seed S]';
