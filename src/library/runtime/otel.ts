import type * as OtelApi from '@opentelemetry/api';
import type { Context, Span as OtelSpan, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { TroupeError } from '../../base/errors.ts';
import type { Redact } from '../../providers/redact.ts';
import type { Span, SpanAttributes, Tracer, TracingOptions } from '../../base/tracing.ts';

type Api = Pick<typeof OtelApi, 'context' | 'trace'>;

const MISSING =
  'tracing needs the package @opentelemetry/api, and an SDK that exports spans: npm i @opentelemetry/api';
const KINDS = { internal: 0, client: 2 } satisfies Record<string, SpanKind>;
const ERROR: SpanStatusCode = 2;

/** Sends spans to the SDK that the application has registered. Without an SDK they are dropped. Throws `config_invalid`. */
export async function openTracer(
  { content = false }: TracingOptions,
  redact: Redact,
  load: () => Promise<Api> = () => import('@opentelemetry/api'),
): Promise<Tracer> {
  const { context, trace } = await load().catch((cause: unknown) => {
    throw new TroupeError('config_invalid', MISSING, {}, { cause });
  });
  const tracer = trace.getTracer('troupe');
  const contexts = new WeakMap<Span, Context>();

  function wrap(span: OtelSpan, at: Context): Span {
    const own: Span = {
      set: (attributes) => void span.setAttributes(clean(attributes)),
      within: (work) => context.with(at, work),
      end(failure) {
        if (failure !== undefined) {
          span.setAttribute('error.type', failure);
          span.setStatus({ code: ERROR });
        }
        span.end();
      },
    };
    contexts.set(own, at);
    return own;
  }

  /** Redacts only with `content`: without it there are ids and names, which contain no secrets. */
  function clean(attributes: SpanAttributes): Record<string, string | number | boolean | string[]> {
    const entries = Object.entries(attributes).map(([name, value]) => {
      if (typeof value === 'object') return [name, [...value]] as const;
      return [name, content && typeof value === 'string' ? redact(value) : value] as const;
    });
    return Object.fromEntries(entries);
  }

  return {
    content,
    span(name, { kind, attributes, parent }) {
      const base = (parent && contexts.get(parent)) ?? context.active();
      const span = tracer.startSpan(name, { kind: KINDS[kind], attributes: clean(attributes) }, base);
      return wrap(span, trace.setSpan(base, span));
    },
  };
}
