/**
 * Ctrl-C: the first asks for an orderly end (so does SIGTERM), the second ends the process at once.
 * Returns what takes the handlers away again.
 */
export function onInterrupt(finish: () => void): () => void {
  let isFinishing = false;
  function interrupt(): void {
    if (isFinishing) process.exit(130);
    isFinishing = true;
    process.stderr.write('finishing…\n');
    finish();
  }
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  return () => {
    process.off('SIGINT', interrupt);
    process.off('SIGTERM', interrupt);
  };
}
