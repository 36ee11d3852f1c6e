/**
 * Gathers what is asked for while one call is under way, and passes it on together in the next: under load a statement
 * serves many, without it nothing waits.
 */
export function createBatches<T, R>(call: (items: T[]) => Promise<R>, most: number) {
  let waiting: { item: T; resolve: (result: R) => void; reject: (error: unknown) => void }[] = [];
  let calling: Promise<void> | null = null;

  async function run(): Promise<void> {
    // What the same turn of the event loop asks for comes along.
    await Promise.resolve();
    while (waiting.length > 0) {
      const batch = waiting.splice(0, most);
      try {
        const result = await call(batch.map(({ item }) => item));
        for (const { resolve } of batch) resolve(result);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
  }

  return {
    add: (item: T): Promise<R> =>
      new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        calling ??= run().finally(() => (calling = null));
      }),
    /** Resolves when nothing is under way. */
    async idle(): Promise<void> {
      while (calling) await calling;
    },
  };
}
