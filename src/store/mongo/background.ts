/** Work that nobody waits for: its failures are told, and a close can wait for it. */
export interface Background {
  run(what: string, work: () => Promise<unknown>): void;
  /** Waits for what was begun. */
  settled(): Promise<void>;
}

export function createBackground(onWarning: (error: unknown, what: string) => void): Background {
  const running = new Set<Promise<void>>();
  return {
    run(what, work) {
      const job = work().then(
        () => undefined,
        (error: unknown) => onWarning(error, what),
      );
      running.add(job);
      void job.then(() => running.delete(job));
    },
    async settled() {
      while (running.size > 0) await Promise.all(running);
    },
  };
}
