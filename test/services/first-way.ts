/** A running service. `stop` ends what was started for it and nothing else. */
export interface Found {
  url: string;
  /** For the output of a test run: what it is and where it came from. */
  how: string;
  /** Only for a server started here: a rig may pause, kill or inspect it. */
  process?: { pid: number; folder: string };
  stop: () => Promise<void>;
}

/** One way to a service. If it is not available here, `not` gives the reason. */
export interface Way {
  name: string;
  open: () => Promise<Found | { not: string }>;
}

export type Service = Found | { missing: string };

/** The first available way. If an available way throws, the next one is tried. */
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
