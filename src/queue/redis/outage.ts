/**
 * Tells an operator once that a service is away and once that it is back, however many calls find out. It is away
 * while any of its parts is: a connection to publish and one to listen are lost and found one by one.
 */
export interface Outage {
  begin(part: string, error: unknown): void;
  end(part: string): void;
}

export interface OutageWords {
  /** `where` of the warnings. */
  where: string;
  /** What the service is, and what goes on without it: `Redis is away: …`. */
  away: string;
  back: string;
}

export function createOutage(
  onWarning: (error: unknown, where: string) => void,
  { where, away, back }: OutageWords,
): Outage {
  const parts = new Set<string>();
  return {
    begin(part, error) {
      const known = parts.size > 0;
      parts.add(part);
      if (known) return;
      const why = error instanceof Error ? error.message : String(error);
      onWarning(new Error(`${away} (${why})`, { cause: error }), where);
    },
    end(part) {
      if (!parts.delete(part) || parts.size > 0) return;
      onWarning(back, where);
    },
  };
}
