import { baselineBody, baselineDrift, type BaselineText } from '../context/index.ts';
import { TroupeError } from '../errors.ts';
import {
  agentAuthor,
  type ActorAddress,
  type BaselineBody,
  type EventDraft,
  type EventId,
  eventOf,
  SYSTEM_AUTHOR,
} from '../events/index.ts';
import type { EngineDeps } from './engine-deps.ts';
import type { Member } from './member.ts';
import type { LiveActor } from './registry.ts';

/**
 * The baseline in force for this turn. An unchanged one is used as it was frozen; a changed one is logged with its
 * reason, because it costs the cache of everything behind it. The first one also logs that the agent has joined.
 */
export async function freezeBaseline(
  deps: EngineDeps,
  address: ActorAddress,
  member: Member,
  live: LiveActor,
): Promise<{ id: EventId; body: BaselineBody }> {
  // Also where nothing is frozen anew: an imported log brings its baselines, not their texts.
  await storeBodies(deps, address, member);
  const frozen = live.view.baseline;
  const reason = baselineDrift(frozen?.body ?? null, member.profile, member.baseline);
  if (frozen && reason === null) return frozen;

  const epoch = (frozen?.body.epoch ?? 0) + 1;
  const body = baselineBody(member.profile, member.baseline, {
    epoch,
    reason: reason ?? '',
  });
  const id = `baseline:${address.agent}:${epoch}` as EventId;
  const author = agentAuthor(member.profile);
  const drafts: EventDraft[] = [{ id, author, to: [], kind: 'baseline', body }];
  if (!frozen) drafts.unshift(joined(address, member));
  await deps.log.append(address, drafts);
  live.view.baseline = { id, body };
  return { id, body };
}

/** Bodies that this process has stored; the texts of an agent are the same in all its conversations. */
const stored = new WeakMap<EngineDeps['store'], Set<string>>();

async function storeBodies(deps: EngineDeps, { tenant }: ActorAddress, member: Member): Promise<void> {
  const known = stored.get(deps.store) ?? new Set<string>();
  stored.set(deps.store, known);
  const missing = member.baseline.filter(({ hash }) => !known.has(`${tenant}/${hash}`));
  if (missing.length === 0) return;
  const now = deps.clock.now();
  await Promise.all(missing.map(({ hash, text }) => deps.store.putBody(tenant, hash, text, now)));
  for (const { hash } of missing) known.add(`${tenant}/${hash}`);
}

function joined(address: ActorAddress, member: Member): EventDraft {
  return {
    id: `joined:${address.agent}` as EventId,
    author: SYSTEM_AUTHOR,
    to: [],
    kind: 'joined',
    body: { agent: address.agent, policy: member.profile.join },
  };
}

export interface FrozenBaseline {
  body: BaselineBody;
  texts: readonly BaselineText[];
}

/** A baseline as it was frozen, with its texts, for rendering an old prompt again. Throws `store_corrupt` if it is gone. */
export async function readBaseline(
  store: EngineDeps['store'],
  address: ActorAddress,
  id: string,
): Promise<FrozenBaseline> {
  const event = await store.readById(address, id as EventId);
  const body = event && eventOf(event, 'baseline')?.body;
  if (!body) throw new TroupeError('store_corrupt', `baseline ${id} is not in the log`, { id });
  const texts = await Promise.all(
    body.layers.map(async ({ name, hash, tokens }) => ({
      name: name as BaselineText['name'],
      hash,
      tokens,
      text: (await store.readBody(address.tenant, hash)) ?? '',
    })),
  );
  return { body, texts };
}
