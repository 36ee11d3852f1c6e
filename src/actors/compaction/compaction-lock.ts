import * as z from 'zod';
import { AgentId, eventOf, type EventOf, runtimeId, SYSTEM_AUTHOR } from '../../events/index.ts';
import type { ConversationKey, Store } from '../../store/store.ts';
import { readOwn } from '../log/own-id.ts';
import type { TurnRun } from '../turn/turn-run.ts';

/**
 * Longer than most summaries take, so that nobody has to renew it: whoever is over it may be paid for twice, and counts
 * once. Others wait for it no longer than a lease.
 */
const LOCK_MS = 600_000;

const Lock = z.object({ agent: AgentId, until: z.number() });

/** Compactions of a conversation are numbered, and an id is taken once: that is what makes them one line. */
export function compactionDraft(number: number) {
  return { id: runtimeId('compaction', number), author: SYSTEM_AUTHOR, kind: 'compaction' as const };
}

export async function readCompaction(
  store: Pick<Store, 'readById'>,
  log: ConversationKey,
  number: number,
): Promise<EventOf<'compaction'> | null> {
  const event = await readOwn(store, log, compactionDraft(number));
  return event && eventOf(event, 'compaction');
}

/**
 * Whether this agent may ask a model for the compaction of this number: the first to say so may, also after a crash.
 * Only saves a second call, as the first compaction that is written counts anyway; so what is over is anybody's.
 */
export async function takeLock({ deps, live }: TurnRun, number: number): Promise<boolean> {
  const { tenant, conversation, agent } = live.address;
  const now = deps.clock.now();
  const mine = JSON.stringify({ agent, until: now + LOCK_MS } satisfies z.infer<typeof Lock>);
  const stored = await deps.store.journal(tenant, `compaction/${conversation}/${number}`, mine, now);
  const lock = Lock.parse(JSON.parse(stored));
  return lock.agent === agent || lock.until < now;
}
