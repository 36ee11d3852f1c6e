/** A model or tool request that a process has open, for one agent in one conversation. */
export interface Work {
  process: string;
  conversation: string;
  agent: string;
}

/** Which work is under way in which process, as its servers see it: what a kill now would break off. */
export interface WorkLog {
  /** Returns what to call when the request is over, however it ended. */
  begin(work: Work): () => void;
  /** The actors a process is at work for. */
  of(process: string): Work[];
  all(): Work[];
}

export function createWorkLog(): WorkLog {
  const open = new Map<string, Set<Work>>();
  return {
    begin(work) {
      const mine = open.get(work.process) ?? new Set();
      open.set(work.process, mine.add(work));
      return () => {
        mine.delete(work);
        if (mine.size === 0) open.delete(work.process);
      };
    },
    of(process) {
      const actors = new Map(
        [...(open.get(process) ?? [])].map((work) => [`${work.conversation}:${work.agent}`, work]),
      );
      return [...actors.values()];
    },
    all: () => [...open.values()].flatMap((mine) => [...mine]),
  };
}
