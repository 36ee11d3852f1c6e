/** What a run was asked for. */
export interface Options {
  /** Fewer logs and rounds, to try things out: no figure of such a run is one to quote. */
  quick: boolean;
  fuzzRounds: number;
  seed: number;
  /** For progress; never part of the result. */
  note: (line: string) => void;
}

export const USAGE =
  'npm run score:context -- [--only section,...] [--json FILE] [--quick] [--strict] [--fuzz-rounds N] [--seed S]';
