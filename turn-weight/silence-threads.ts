import { EventEmitter } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import threads from 'node:worker_threads';

/** A thread that never answers. */
class SilentWorker extends EventEmitter {
  postMessage(): void {}
  ref(): void {}
  unref(): void {}
  terminate(): Promise<number> {
    return Promise.resolve(0);
  }
}

/**
 * Threads work beside a turn and answer whenever they are done: the store has one that copies its write-ahead log. Their
 * answers would be counted with any turn, so from now on there are none.
 */
export function silenceThreads(): void {
  Object.assign(threads, { Worker: SilentWorker });
  syncBuiltinESMExports();
}
