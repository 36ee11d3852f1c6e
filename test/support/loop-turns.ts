/** Watches the event loop during a run: its number of turns, and the longest time that one turn blocked it. */
export async function watchLoop<T>(
  run: () => Promise<T>,
): Promise<{ turns: number; longestMs: number; result: T }> {
  const watch = { turns: 0, longestMs: 0, isOver: false };
  const turn = (before: NodeJS.CpuUsage): void => {
    const { user, system } = process.threadCpuUsage(before);
    watch.turns += 1;
    watch.longestMs = Math.max(watch.longestMs, (user + system) / 1_000);
    if (!watch.isOver) next();
  };
  const next = () => void setImmediate(turn, process.threadCpuUsage());
  next();
  try {
    const result = await run();
    return { turns: watch.turns, longestMs: watch.longestMs, result };
  } finally {
    watch.isOver = true;
  }
}
