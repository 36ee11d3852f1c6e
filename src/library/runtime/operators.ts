import type * as OtelApi from '@opentelemetry/api';
import type { Context, Span as OtelSpan, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import type { LogFacts, Logger, LogIds } from '../../base/logger.ts';
import type { TracingOptions, Span, SpanAttributes, Tracer } from '../../base/tracing.ts';
import { hideSecrets, type ModelSettings, secretValues } from './secrets.ts';
import { toTroupeError, TroupeError } from '../../base/errors.ts';
import type { Redact } from '../../providers/redact.ts';
import { hiddenIn } from '../config/redact-secrets.ts';

interface OperatorOptions {
  logger?: Logger;
  tracing?: boolean | TracingOptions;
  onWarning?: (error: unknown, where: string) => void;
  env: Record<string, string | undefined>;
  mongodb?: string;
  postgres?: string;
  redis?: string;
  process: string;
}

/** Logger, tracer and warnings of a process. Their output holds no secrets. Throws `config_invalid`. */
export async function openOperators(
  definition: ModelSettings,
  { logger, tracing = false, onWarning, env, mongodb, postgres, redis, process }: OperatorOptions,
): Promise<Pick<EngineDeps, 'logger' | 'tracer' | 'onWarning'>> {
  const own = ['TROUPE_TOKEN', 'TROUPE_KEY', 'TROUPE_NOSTR_PASSPHRASE'].map((name) => env[name]);
  const known = hideSecrets([...secretValues(definition, env), ...own], [mongodb, postgres, redis]);
  const hide = hiddenIn(definition);
  const redact: Redact = hide ? (text) => hide(known(text)) : known;
  const guarded = logger && guardLogger(logger, redact, process);
  // Loaded only if tracing is on.
  const tracer = tracing === false ? undefined : await openTracer(tracing === true ? {} : tracing, redact);
  const warn = (error: unknown, where: string) => print(redact(lineOf(error, where)));
  return {
    ...(guarded && { logger: guarded }),
    ...(tracer && { tracer }),
    onWarning: guardWarnings(onWarning ?? (guarded ? warnThrough(guarded) : warn), warn),
  };
}

type OnWarning = EngineDeps['onWarning'];

/** Catches errors of a listener: thrown into a lease renewal or a router, they would end it, because nothing above catches them. */
function guardWarnings(onWarning: OnWarning, instead: OnWarning): OnWarning {
  return (error, where) => {
    try {
      onWarning(error, where);
    } catch (thrown) {
      instead(thrown, 'onWarning');
    }
  };
}

function lineOf(error: unknown, where: string): string {
  return `troupe: ${where}: ${error instanceof Error ? error.message : String(error)}`;
}

function print(line: string): void {
  console.warn(line);
}

/** Maximum characters of an error message. A longer one probably quotes text of people or models. */
const MAX_MESSAGE = 1_000;

/** A logger that hides secrets and adds the id of the process to each line. */
export function guardLogger(logger: Logger, redact: Redact, process?: string): Logger {
  return {
    isOn: (level) => logger.isOn(level),
    write(level, code, ids, facts) {
      if (!logger.isOn(level)) return;
      try {
        const known = process === undefined ? ids : { ...ids, process };
        logger.write(level, code, known, facts && clean(facts, redact));
      } catch {
        // A full disk or a closed pipe must not end a turn, and it cannot be logged.
      }
    },
  };
}

function clean(facts: LogFacts, redact: Redact): LogFacts {
  const { message, where } = facts;
  return {
    ...facts,
    ...(where !== undefined && { where: redact(where) }),
    ...(message !== undefined && { message: redact(message).slice(0, MAX_MESSAGE) }),
  };
}

/** Writes warnings as log lines. Ids in the data of an error become ids of the line. */
export function warnThrough(logger: Logger): (error: unknown, where: string) => void {
  return (thrown, where) => {
    if (typeof thrown === 'string') return logger.write('warn', 'warning', {}, { where, message: thrown });
    const { code, message, data } = toTroupeError(thrown);
    logger.write('warn', 'warning', idsIn(data), { error: code, where, message });
  };
}

function idsIn(data: Record<string, unknown>): LogIds {
  const names = ['tenant', 'conversation', 'agent', 'turn'] as const;
  const known = names.flatMap((name) => {
    const value = data[name];
    return typeof value === 'string' ? [[name, value] as const] : [];
  });
  return Object.fromEntries(known);
}

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
