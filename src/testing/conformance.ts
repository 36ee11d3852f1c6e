/** One promise of a port as data: any test runner can run it against any adapter. */
export interface ConformanceCase {
  group: string;
  name: string;
  run(): Promise<void>;
}
