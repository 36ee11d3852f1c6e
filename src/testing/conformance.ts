/** One test of a port's contract, for any test runner and any adapter. */
export interface ConformanceCase {
  group: string;
  name: string;
  run(): Promise<void>;
}
