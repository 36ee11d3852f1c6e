import type { Clock } from '../../base/clock.ts';
import { TroupeError } from '../../base/errors.ts';

/**
 * Whether the embedder may be called. After a failure it is not called for `REST_MS`. Of failures in a row only the first
 * is a warning. Only a query answered in time ends the row: an embedder that succeeds in the background but is always late
 * for turns would otherwise cause warnings for ever.
 */
export interface EmbedderWatch {
  isReady(): boolean;
  failed(error: unknown): void;
  /** The result of `ask`; null if it fails or takes longer than `ms`. */
  withDeadline<T>(
    ms: number,
    signal: AbortSignal,
    ask: (signal: AbortSignal) => Promise<T>,
  ): Promise<T | null>;
}

const REST_MS = 60_000;

export function createEmbedderWatch({
  clock,
  onWarning,
}: {
  clock: Clock;
  onWarning: (error: unknown, where: string) => void;
}): EmbedderWatch {
  let restUntil = -Infinity;
  let isFailing = false;

  function failed(error: unknown): void {
    restUntil = clock.monotonic() + REST_MS;
    if (!isFailing) onWarning(error, 'embedder, memories are searched by words alone');
    isFailing = true;
  }

  return {
    isReady: () => clock.monotonic() >= restUntil,
    failed,
    async withDeadline(ms, signal, ask) {
      const asking = new AbortController();
      const answer = ask(AbortSignal.any([signal, asking.signal])).then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      );
      const late = clock.sleep(ms, AbortSignal.any([signal, asking.signal])).then(() => null);
      const outcome = await Promise.race([answer, late]);
      // Ends the late request, or the sleep.
      asking.abort();
      if (signal.aborted) return null;
      if (outcome && 'value' in outcome) {
        isFailing = false;
        return outcome.value;
      }
      failed(outcome?.error ?? new TroupeError('provider_unreachable', `no vector within ${ms} ms`));
      return null;
    },
  };
}
