/** An open model or tool request of a process, for one agent in one conversation. */
export interface Work {
  process: string;
  conversation: string;
  agent: string;
}

/** The work under way in each process, as its servers see it: what a kill now would break off. */
export interface WorkLog {
  /** Returns the function to call when the request is over, however it ended. */
  begin(work: Work): () => void;
  /** The actors that a process works for. */
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
