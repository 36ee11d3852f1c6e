import type { EngineDeps } from '../actors/engine/engine-deps.ts';
import type { Logger } from '../logger.ts';
import type { TracingOptions } from '../tracing.ts';
import { hideSecrets } from './hide-secrets.ts';
import { guardLogger, warnThrough } from './operator-log.ts';
import { type ModelSettings, secretValues } from './secret-names.ts';

export interface OperatorOptions {
  logger?: Logger;
  tracing?: boolean | TracingOptions;
  onWarning?: (error: unknown, where: string) => void;
  env: Record<string, string | undefined>;
  mongodb?: string;
  redis?: string;
  process: string;
}

/** What tells operators of a process. Nothing that it writes holds a secret. Throws `config_invalid`. */
export async function openOperators(
  definition: ModelSettings,
  { logger, tracing = false, onWarning, env, mongodb, redis, process }: OperatorOptions,
): Promise<Pick<EngineDeps, 'logger' | 'tracer' | 'onWarning'>> {
  const own = ['TROUPE_TOKEN', 'TROUPE_KEY', 'TROUPE_NOSTR_PASSPHRASE'].map((name) => env[name]);
  const redact = hideSecrets([...secretValues(definition, env), ...own], [mongodb, redis]);
  const guarded = logger && guardLogger(logger, redact, process);
  // Only who asks for it pays for loading it.
  const tracer =
    tracing === false
      ? undefined
      : await (await import('./otel.ts')).openTracer(tracing === true ? {} : tracing, redact);
  const warn = (error: unknown, where: string) => print(redact(lineOf(error, where)));
  return {
    ...(guarded && { logger: guarded }),
    ...(tracer && { tracer }),
    onWarning: heard(onWarning ?? (guarded ? warnThrough(guarded) : warn), warn),
  };
}

type OnWarning = EngineDeps['onWarning'];

/** A listener that throws must not end a renewal or a router, which have nobody to tell. */
function heard(onWarning: OnWarning, instead: OnWarning): OnWarning {
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
