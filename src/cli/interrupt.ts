export interface InterruptOptions {
  /** The process ends after this time whatever is left of it, and that is no failure: others take up what was cut off. */
  withinMs?: number;
}

/**
 * Ctrl-C: the first asks for an orderly end (so does SIGTERM), the second ends the process at once.
 * Returns what takes the handlers away again.
 */
export function onInterrupt(finish: () => void, { withinMs }: InterruptOptions = {}): () => void {
  let isFinishing = false;
  function interrupt(): void {
    if (isFinishing) process.exit(130);
    isFinishing = true;
    process.stderr.write('finishing…\n');
    // Not taken back with the handlers: something may hang after all is done, and keep the process.
    if (withinMs !== undefined) setTimeout(giveUp, withinMs).unref();
    finish();
  }
  function giveUp(): void {
    process.stderr.write('not everything ended in time; its leases run out by themselves\n');
    process.exit();
  }
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  return () => {
    process.off('SIGINT', interrupt);
    process.off('SIGTERM', interrupt);
  };
}
