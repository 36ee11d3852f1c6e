/** A service that is there. `stop` ends what was started for it and nothing else. */
export interface Found {
  url: string;
  /** For the reader of a test run: what it is and where it came from. */
  how: string;
  /** Only of a server started here: what a rig may pause, kill or look into. */
  process?: { pid: number; folder: string };
  stop: () => Promise<void>;
}

/** One way to a service. That it is not open here is an answer: `not` says why. */
export interface Way {
  name: string;
  open: () => Promise<Found | { not: string }>;
}

export type Service = Found | { missing: string };

/** The first way that is open. A way that throws was open and went wrong: the next one is tried all the same. */
export async function firstWay(ways: readonly Way[]): Promise<Service> {
  const reasons: string[] = [];
  for (const { name, open } of ways) {
    const result = await open().catch((error: unknown) => ({
      not: error instanceof Error ? error.message : String(error),
    }));
    if (!('not' in result)) return result;
    reasons.push(`${name}: ${result.not}`);
  }
  return { missing: reasons.join('; ') };
}
