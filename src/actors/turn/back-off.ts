import type { AgentEvent } from '../../machines/agent-lifecycle.ts';
import type { TurnRun } from './turn-run.ts';

/** Waits before the next try of the same request, while the lease is renewed. A restart starts the count again. */
export async function backOff(run: TurnRun): Promise<AgentEvent> {
  const { deps, failure, lease } = run;
  if (!failure) return { type: 'RETRY_DUE' };
  // A process that ends does not wait: the next one starts the step again.
  await deps.clock.sleep(failure.wait?.ms ?? 0, AbortSignal.any([lease.signal, deps.stopping]));
  if (lease.signal.aborted) return { type: 'ABORTED' };
  const { provider } = run.runtime.profile;
  deps.metrics.count('model_retries', { provider, code: failure.code });
  run.ending = { kind: 'done' };
  return { type: 'RETRY_DUE' };
}
