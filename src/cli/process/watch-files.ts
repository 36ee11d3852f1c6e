import { unwatchFile, watchFile } from 'node:fs';

/** Polled, because saving replaces files in many editors, and because mounted folders send no notices. */
const POLL_MS = 250;

export interface WatchedFiles extends Disposable {
  /** Watches these files from now on, instead of those before. */
  set(files: readonly string[]): void;
}

/** Calls `onChange` with the path of a file that was changed, made or removed. */
export function watchFiles(onChange: (file: string) => void): WatchedFiles {
  const watched = new Map<string, () => void>();
  function stop(file: string): void {
    unwatchFile(file, watched.get(file));
    watched.delete(file);
  }
  return {
    set(files) {
      for (const file of watched.keys()) if (!files.includes(file)) stop(file);
      for (const file of files) {
        if (watched.has(file)) continue;
        const notice = () => onChange(file);
        watched.set(file, notice);
        watchFile(file, { interval: POLL_MS, persistent: false }, notice);
      }
    },
    [Symbol.dispose]() {
      for (const file of watched.keys()) stop(file);
    },
  };
}
