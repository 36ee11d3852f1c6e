import { existsSync } from 'node:fs';

/** As a crash would: resolves when the process has been buried, and its parent has been told. */
export async function killProcesses(pids: readonly number[]): Promise<void> {
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  while (pids.some((pid) => existsSync(`/proc/${pid}`)))
    await new Promise((resolve) => setImmediate(resolve));
}
