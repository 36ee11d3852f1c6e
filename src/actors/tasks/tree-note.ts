import { TroupeError } from '../../errors.ts';
import type { ConversationId, TenantId } from '../../events/index.ts';
import type { ConversationKey, Store } from '../../store/store.ts';

/**
 * Up to which message all that came of a conversation was called off: one note that only moves forward. Beside the
 * conversation's log, since who asks knows neither its length nor which of its messages was the last.
 */
const MOST_ROUNDS = 20;

export async function noteCallOff(
  store: Pick<Store, 'get' | 'compareAndSet'>,
  { tenant, conversation }: ConversationKey,
  begun: string,
): Promise<void> {
  const key = keyOf(conversation);
  let noted = await store.get(tenant, key);
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    if (noted !== null && covers(noted, begun)) return;
    const stored = await store.compareAndSet(tenant, key, noted, begun);
    if (stored === begun) return;
    noted = stored;
  }
  throw new TroupeError('store_unavailable', `${key} changes faster than it can be written; try again`);
}

/** Whether what a tree is counted with was called off with all of its conversation. */
export async function isNotedOff(
  store: Pick<Store, 'get'>,
  tenant: TenantId,
  root: ConversationId,
  tree: string,
): Promise<boolean> {
  const noted = await store.get(tenant, keyOf(root));
  return noted !== null && covers(noted, tree);
}

function keyOf(root: ConversationId): string {
  return `calledoff/${root}`;
}

/** By place and time: a conversation that was deleted and is there again counts anew, and clocks of processes differ. */
function covers(noted: string, tree: string): boolean {
  const [last, until] = partsOf(noted);
  const [seq, at] = partsOf(tree);
  return seq <= last && at <= until;
}

function partsOf(tree: string): [seq: number, at: number] {
  const [seq = '', at = ''] = tree.split('-');
  return [Number(seq) || 0, Number.parseInt(at, 36) || 0];
}
