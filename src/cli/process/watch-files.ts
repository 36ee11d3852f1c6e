import { statSync } from 'node:fs';

/** Polled, because saving replaces files in many editors, and because mounted folders send no notices. */
const POLL_MS = 250;

export interface WatchedFiles extends Disposable {
  /** A file that is about to be read: changes from now on are noticed. */
  add: (file: string) => void;
  /** Calls `onChange` when a file was changed, made or removed after it was added. */
  start(onChange: () => void): void;
}

export function watchFiles(): WatchedFiles {
  const stamps = new Map<string, string>();
  let timer: NodeJS.Timeout | undefined;
  function check(onChange: () => void): void {
    const changed = [...stamps].filter(([file, stamp]) => stampOf(file) !== stamp);
    for (const [file] of changed) stamps.set(file, stampOf(file));
    if (changed.length > 0) onChange();
  }
  return {
    add(file) {
      if (!stamps.has(file)) stamps.set(file, stampOf(file));
    },
    start(onChange) {
      timer = setInterval(() => check(onChange), POLL_MS).unref();
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

/** Differs when the file was written or replaced. Empty if there is none. */
function stampOf(file: string): string {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat ? [stat.mtimeMs, stat.ctimeMs, stat.size, stat.ino].join(' ') : '';
}
