/** One test of a port's contract, for any test runner and any adapter. */
export interface ConformanceCase {
  /** What it is about. */
  group: string;
  /** What must hold, as a sentence. */
  name: string;
  /** Fails with an assertion error. */
  run: () => Promise<void>;
}
