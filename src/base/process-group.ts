import type { ChildProcess } from 'node:child_process';

/** Signals the group of a process that was spawned `detached`: the process and its children. */
export function signalGroup(child: ChildProcess | null, signal: NodeJS.Signals): void {
  try {
    if (child?.pid !== undefined) process.kill(-child.pid, signal);
  } catch {
    // The group has ended already.
  }
}
