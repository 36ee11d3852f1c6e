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
  /** Like the global `fetch`, but refuses redirects to other origins and answers beyond the limits of size. */
  fetch: typeof fetch;
  /** Counts text that `read` buffers before it yields it, such as the arguments of a call. Throws at the limits. */
  buffered: (kind: 'arguments' | 'reasoning', text: string) => void;
}

/** A model that a program brings. */
export interface ProviderDefinition {
  /** Shown to people and in metrics: letters, digits, `.`, `_` and `-`. */
  name: string;
  /** What differs from a plain model that takes tools. A provider with a memory of its own cannot be defined here. */
  capabilities?: Partial<Omit<ProviderCapabilities, 'sessionResumption' | 'rewind' | 'fork'>> | undefined;
  /** Keys, which are removed from error messages: vendors may repeat them. */
  secrets?: readonly string[] | undefined;
  /** Limits of the size and duration of an answer. Default: those of the other providers. */
  replyLimits?: ReplyLimitSettings | undefined;
  /**
   * One call of the model. Yields `text` as it comes, `reasoning`, each `call` once its arguments are complete, and finally
   * `done` with the usage. An error that it throws becomes the failure of the call; the error's HTTP `status` and
   * `retry-after` header decide whether the call is retried. Must end when `signal` aborts, and must not retry.
   */
  read(request: ModelRequest, call: ModelCall): AsyncIterable<ModelEvent>;
  /** Called when the troupe is closed, perhaps more than once. */
  close?(): Promise<void>;
}

const NAME = /^[A-Za-z][A-Za-z0-9._-]{0,63}$/;

/**
 * Makes a provider from a program's own model. Events that break the port's contract are repaired or become a failure:
 * silence and endless answers end at the limits, and a stream that just ends fails with `provider_truncated`.
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
 * Like the global `fetch`, but refuses redirects to other origins and answers beyond the limits of size, and waits 3.5 s for a
 * connection. For packages that make their own requests: `createAnthropic({ fetch: boundedFetch() })`.
 */
export function boundedFetch(settings?: ReplyLimitSettings): typeof fetch {
  return vendorFetch(replyLimits(settings)) as typeof fetch;
}

function eventsOf(name: string, events: AsyncIterable<ModelEvent>): AsyncIterable<ModelEvent> {
  if (Symbol.asyncIterator in Object(events)) return events;
  const message = `read of the provider "${name}" gives no stream of events: write it as async *read(…)`;
  throw new TroupeError('provider_invalid_reply', message);
}

/** Every event proves that the vendor is alive. Calls and reasoning are counted here once they are whole. */
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
