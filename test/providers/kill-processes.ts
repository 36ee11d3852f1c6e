import { existsSync } from 'node:fs';

/** Kills like a crash. Resolves when the processes are gone and their parents have been notified. */
export async function killProcesses(pids: readonly number[]): Promise<void> {
  for (const pid of pids) kill(pid);
  while (pids.some((pid) => existsSync(`/proc/${pid}`)))
    await new Promise((resolve) => setImmediate(resolve));
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    // It has ended by itself, or was killed before.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
