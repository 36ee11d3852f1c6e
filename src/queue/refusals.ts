import type { Clock } from '../base/clock.ts';
import { ActorAddress, addressKey } from '../events/index.ts';
import { FORGOTTEN_MS, MOST_REFUSED, type Refused, type SlotOf } from './admission.ts';

/** The text of a slot. It begins with its tenant (`admission-rules.ts`). */
export function slotText({ address, provider }: SlotOf, unique: string | number): string {
  return `${addressKey(address)}/${unique}/${provider}`;
}

/** Null for the slot of a release that wrote other texts. */
export function parseSlot(text: string): SlotOf | null {
  const [tenant, conversation, agent, unique, ...provider] = text.split('/');
  const address = ActorAddress.safeParse({ tenant, conversation, agent });
  if (!address.success || unique === undefined || provider.length === 0) return null;
  return { address: address.data, provider: provider.join('/') };
}

type Wish = Omit<Refused, 'since'>;

/** The text of a refused wish. It stays the same however often the actor asks. */
export function wishText({ address, provider, for: what }: Wish): string {
  return slotText({ address, provider }, what);
}

/** Null for the text of another release. */
export function parseWish(text: string): Wish | null {
  const slot = parseSlot(text);
  const what = text.split('/', 4)[3];
  return slot && (what === 'slot' || what === 'call') ? { ...slot, for: what } : null;
}

/** Refused wishes of one process. */
export interface RefusalCache {
  /** Notes an answer: 0, or how many ms to wait before asking again. */
  note(wish: Wish, retryMs: number): void;
  all(): Refused[];
}

/** A wish is told with the time of day and forgotten by the monotonic clock: a clock that is set forgets nobody. */
export function createRefusalCache(clock: Pick<Clock, 'now' | 'monotonic'>): RefusalCache {
  const wishes = new Map<string, { refused: Refused; until: number }>();
  return {
    note(wish, retryMs) {
      if (retryMs === 0 && wishes.size === 0) return;
      const key = wishText(wish);
      const known = wishes.get(key);
      const now = clock.monotonic();
      const since = known && known.until > now ? known.refused.since : Math.floor(clock.now());
      if (retryMs === 0) wishes.delete(key);
      else wishes.set(key, { refused: { ...wish, since }, until: now + retryMs + FORGOTTEN_MS });
    },
    all() {
      const now = clock.monotonic();
      for (const [key, { until }] of wishes) if (until <= now) wishes.delete(key);
      return [...wishes.values()]
        .map(({ refused }) => refused)
        .toSorted((a, b) => a.since - b.since)
        .slice(0, MOST_REFUSED);
    },
  };
}
