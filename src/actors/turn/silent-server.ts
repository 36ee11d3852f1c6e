import { TroupeError } from '../../base/errors.ts';
import type { ModelFailure } from '../../providers/provider.ts';
import type { TurnRun } from './turn-run.ts';

/** Pause between two warnings of the same server, ms. */
const TELL_EVERY_MS = 600_000;
const MOST_TOLD = 1_000;

/** When each server was reported last, by the listener that was told. */
const told = new WeakMap<object, Map<string, number>>();

type Watched = Pick<TurnRun, 'deps' | 'live' | 'runtime'>;

/** Tells operators of a model server that does not answer: the turn waits, and nobody may be looking at its conversation. */
export function tellAway(run: Watched, { code, message, isAway }: ModelFailure): void {
  if (isAway === true || code === 'provider_unreachable') tell(run, message);
}

export function tellSilent(run: Watched, ms: number): void {
  tell(run, `the request was accepted, and nothing has come for ${Math.round(ms / 1_000)} s`);
}

function tell({ deps, live, runtime }: Watched, cause: string): void {
  const { agent, conversation, tenant } = live.address;
  const { provider, profile } = runtime;
  const server = provider.server ? `${provider.server.address}:${provider.server.port}` : profile.provider;
  const times = told.get(deps.onWarning) ?? new Map<string, number>();
  told.set(deps.onWarning, times);
  const now = deps.clock.monotonic();
  if (now - (times.get(server) ?? -Infinity) < TELL_EVERY_MS) return;
  if (times.size >= MOST_TOLD) times.clear();
  times.set(server, now);
  const message = `${server} does not answer: ${cause}. @${agent} waits for it in ${conversation}`;
  const error = new TroupeError('provider_unreachable', message, { tenant, agent, conversation });
  deps.onWarning(error, `model of @${agent}`);
}
