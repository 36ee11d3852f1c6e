import { TroupeError } from '../base/errors.ts';
import { guardedStream } from './guard-stream.ts';
import {
  type ModelEvent,
  type ModelRequest,
  type Provider,
  type ProviderCapabilities,
  STATELESS,
} from './provider.ts';
import { type ReplyLimits, type ReplyLimitSettings, replyLimits, ReplyMeter } from './reply-limits.ts';
import { vendorFetch } from './vendor-fetch.ts';

/** What a provider needs for one call. */
export interface ModelCall {
  /** Aborts when the turn is stopped, and at the limits of time and silence. */
  signal: AbortSignal;
  /** As the global `fetch`, but refuses redirects to other origins and answers beyond the limits of size. */
  fetch: typeof fetch;
  /** Counts what is buffered and not yielded yet, such as arguments of a call that grow. Throws at the limits. */
  buffered: (kind: 'arguments' | 'reasoning', text: string) => void;
}

/** A model that a program brings. */
export interface ProviderDefinition {
  /** Shown to people and in metrics: letters, digits, `.`, `_` and `-`. */
  name: string;
  /** What differs from a plain model that takes tools. Providers with a memory of their own are none of these. */
  capabilities?: Partial<Omit<ProviderCapabilities, 'sessionResumption' | 'rewind' | 'fork'>> | undefined;
  /** Removed from the messages of errors: keys, which vendors may repeat. */
  secrets?: readonly string[] | undefined;
  /** Limits of the size and duration of an answer. Default: those of the other providers. */
  replyLimits?: ReplyLimitSettings | undefined;
  /**
   * One call of the model. Yields `text` as it comes, `reasoning`, each `call` once its arguments are complete, and at the
   * end `done` with the usage. What it throws becomes the failure of the call: an HTTP `status` and a `retry-after` header
   * of the error decide whether it is tried again. Ends when `signal` aborts. Never retries.
   */
  read(request: ModelRequest, call: ModelCall): AsyncIterable<ModelEvent>;
  /** Called when the troupe is closed, maybe more than once. */
  close?(): Promise<void>;
}

const NAME = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/;

/**
 * A provider of a program's own. What is not as the port demands is mended or becomes a failure: silence and endless
 * answers end at the limits, a stream that just ends is `provider_truncated`.
 *
 *     const mine = defineProvider({ name: 'mine', async *read({ messages }) {
 *       yield { type: 'text', delta: await generate(messages) };
 *       yield { type: 'done', stop: 'end', usage: NO_USAGE };
 *     } });
 */
export function defineProvider(definition: ProviderDefinition): Provider {
  const { name, secrets = [] } = definition;
  if (!NAME.test(name))
    throw new TroupeError(
      'config_invalid',
      `the name of a provider must match ${NAME}: got ${JSON.stringify(name)}`,
    );
  if (typeof definition.read !== 'function')
    throw new TroupeError(
      'config_invalid',
      `the provider "${name}" needs read: async function* (request, { signal })`,
    );
  const capabilities: ProviderCapabilities = { ...STATELESS, caching: 'none', ...definition.capabilities };
  const { templateMarks = [] } = capabilities;
  const limits = replyLimits(definition.replyLimits);
  const bounded = boundedFetch(definition.replyLimits);
  return {
    name,
    capabilities,
    stream: guardedStream({
      name,
      limits,
      secrets,
      templateMarks,
      read(request, { signal, touch, meter }) {
        const buffered: ModelCall['buffered'] = (kind, text) => {
          touch();
          meter[kind](text);
        };
        const events = () => eventsOf(name, definition.read(request, { signal, fetch: bounded, buffered }));
        return counted(events, { touch, limits });
      },
    }),
    close: async () => definition.close?.(),
  };
}

/**
 * As the global `fetch`, but refuses redirects to other origins and answers beyond the limits of size, and waits 3.5 s for a
 * connection. For packages that make their requests themselves: `createAnthropic({ fetch: boundedFetch() })`.
 */
export function boundedFetch(settings?: ReplyLimitSettings): typeof fetch {
  return vendorFetch(replyLimits(settings)) as typeof fetch;
}

function eventsOf(name: string, events: AsyncIterable<ModelEvent>): AsyncIterable<ModelEvent> {
  if (Symbol.asyncIterator in Object(events)) return events;
  const message = `read of the provider "${name}" gives no stream of events: write it as async *read(…)`;
  throw new TroupeError('provider_invalid_reply', message);
}

/** Every event is a sign of life. Calls and reasoning are counted again when they are whole. */
async function* counted(
  events: () => AsyncIterable<ModelEvent>,
  { touch, limits }: { touch: () => void; limits: ReplyLimits },
): AsyncGenerator<ModelEvent> {
  const meter = new ReplyMeter(limits);
  for await (const event of events()) {
    touch();
    if (event.type === 'reasoning') {
      meter.reasoning(event.reasoning.text);
      meter.reasoning(event.reasoning.signature);
    }
    if (event.type === 'call') {
      meter.call();
      meter.arguments(event.call.args);
    }
    yield event;
  }
}
