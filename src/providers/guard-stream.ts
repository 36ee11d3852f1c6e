import { classifyFailure } from './classify-failure.ts';
import type { ModelEvent, ModelFailure } from './provider.ts';
import { vendorErrorOf } from './vendor-error.ts';

/** What the guard hands to an adapter's reader. */
export interface StreamWatch {
  /** Ends the vendor's request. */
  signal: AbortSignal;
  /** To be called for every chunk, also for those that give no event. */
  touch: () => void;
}

export interface GuardOptions {
  signal: AbortSignal;
  /** The longest silence of the vendor. */
  silenceMs: number;
  /** Yields text, reasoning, calls and `done` or `failed`; may throw; may just end where the vendor's stream did. */
  read: (watch: StreamWatch) => AsyncIterable<ModelEvent>;
  /** Never to be seen in a message: what a vendor echoes of a request is put into errors. */
  secrets: readonly string[];
}

/**
 * Holds an adapter to the contract of the provider port, whatever its SDK does: SDKs end quietly on an abort and on a
 * cut connection, and may never settle. The abort is therefore raced with the stream, not passed on and trusted.
 */
export async function* guardStream(options: GuardOptions): AsyncGenerator<ModelEvent> {
  const { signal, silenceMs, read, secrets } = options;
  yield { type: 'start' };
  if (signal.aborted) {
    yield { type: 'aborted' };
    return;
  }
  const request = new AbortController();
  const interrupted = Promise.withResolvers<'aborted' | 'silent'>();
  const abort = () => interrupted.resolve('aborted');
  signal.addEventListener('abort', abort, { once: true });
  let opened = false;
  let timer: NodeJS.Timeout | undefined;
  const events = read({
    signal: request.signal,
    touch() {
      opened = true;
      timer?.refresh();
    },
  })[Symbol.asyncIterator]();
  try {
    while (true) {
      // Armed only while we wait: a slow consumer is not a silent vendor.
      timer = setTimeout(() => interrupted.resolve('silent'), silenceMs);
      const next = events.next();
      next.catch(ignore);
      const step = await Promise.race([interrupted.promise, next]);
      clearTimeout(timer);
      timer = undefined;
      if (step === 'aborted' || signal.aborted) {
        yield { type: 'aborted' };
        return;
      }
      if (step === 'silent') {
        yield { type: 'failed', error: silence(silenceMs, opened) };
        return;
      }
      if (step.done) {
        yield { type: 'failed', error: { code: 'provider_truncated', message: TRUNCATED } };
        return;
      }
      yield step.value;
      if (step.value.type === 'done' || step.value.type === 'failed') return;
    }
  } catch (thrown) {
    if (signal.aborted) yield { type: 'aborted' };
    else {
      const error = classifyFailure(vendorErrorOf(thrown), { opened, now: Date.now(), secrets });
      yield { type: 'failed', error };
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
    request.abort();
    events.return?.().catch(ignore);
  }
}

const TRUNCATED = 'the stream ended before the model had finished its answer';

function silence(silenceMs: number, opened: boolean): ModelFailure {
  const code = opened ? 'provider_truncated' : 'provider_unreachable';
  return { code, message: `nothing was received for ${silenceMs} ms` };
}

/** The ending was already reported; what the SDK says afterwards changes nothing. */
function ignore(): void {}
