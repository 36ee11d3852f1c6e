import type { Clock } from '../../clock.ts';

/** Aborts its signal when nothing has been heard for so long. */
export interface Silence extends Disposable {
  signal: AbortSignal;
  /** Something was heard: the time begins anew. */
  end(): void;
}

export function createSilence(clock: Pick<Clock, 'monotonic' | 'sleep'>, ms: number): Silence {
  const over = new AbortController();
  const quit = new AbortController();
  let heardAt = clock.monotonic();

  async function watch(): Promise<void> {
    for (let left = ms; left > 0 && !quit.signal.aborted; left = heardAt + ms - clock.monotonic())
      await clock.sleep(left, quit.signal);
    if (!quit.signal.aborted) over.abort();
  }

  void watch();
  return {
    signal: over.signal,
    end() {
      heardAt = clock.monotonic();
    },
    [Symbol.dispose]: () => quit.abort(),
  };
}
