import type { Clock } from '../clock.ts';
import type { ModelEvent, ModelRequest, Provider } from './provider.ts';
import type { RecordedCall } from './recording-file.ts';
import { type Redact, redactAll } from './redact.ts';

/** Where recorded calls go. */
export interface RecordSink {
  write: (call: RecordedCall) => void;
  redact: Redact;
  clock: Clock;
  /** A call that cannot be written is answered all the same. */
  onWarning: (error: unknown, where: string) => void;
}

/**
 * The same provider, with every call written down, redacted, before its last event is given: whatever the engine has
 * acted on is in the recording. A call that its reader gave up is recorded as aborted.
 */
export function record(provider: Provider, sink: RecordSink): Provider {
  const { name, capabilities, home, server } = provider;
  // All members, those that may be missing too: one that is added to the port must not get lost here.
  const recorder: Required<Omit<Provider, Optional>> & Pick<Provider, Optional> = {
    name,
    capabilities,
    ...(home !== undefined && { home }),
    ...(server && { server }),
    stream: (request, options) => recorded(provider.stream(request, options), request, sink),
    leave: (cacheKey) => provider.leave?.(cacheKey),
    close: async () => provider.close?.(),
  };
  return recorder;
}

type Optional = 'home' | 'server';

async function* recorded(
  source: AsyncIterable<ModelEvent>,
  request: ModelRequest,
  { write, redact, clock, onWarning }: RecordSink,
): AsyncGenerator<ModelEvent> {
  const began = clock.monotonic();
  const events: ModelEvent[] = [];
  let ended = false;
  function end(): void {
    ended = true;
    try {
      const ms = Math.round(clock.monotonic() - began);
      // Their hashes stand in the messages, and say enough to find a request again.
      const { images: _, ...words } = request;
      write({
        request: redactAll(words, redact),
        events: redactAll(unbroken(events, redact), redact),
        ms,
      });
    } catch (error) {
      onWarning(error, 'recording');
    }
  }
  try {
    for await (const event of source) {
      events.push(event);
      if (event.type === 'done' || event.type === 'failed' || event.type === 'aborted') end();
      yield event;
    }
  } finally {
    if (!ended) {
      events.push({ type: 'aborted' });
      end();
    }
  }
}

/** A key may be spread over several pieces of text: then the text is kept in one. */
function unbroken(events: readonly ModelEvent[], redact: Redact): ModelEvent[] {
  const deltas = events.flatMap((event) => (event.type === 'text' ? [event.delta] : []));
  const whole = deltas.join('');
  if (redact(whole) === deltas.map(redact).join('')) return [...events];
  const first = events.findIndex(({ type }) => type === 'text');
  return events.flatMap((event, index): ModelEvent[] => {
    if (event.type !== 'text') return [event];
    return index === first ? [{ type: 'text', delta: whole }] : [];
  });
}
