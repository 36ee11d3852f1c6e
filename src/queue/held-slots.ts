import type { AskServer } from './ask-server.ts';

/** A place where a slot is held: that of a tenant or of a provider, and the slot as its member. */
export interface HeldPlace {
  /** That of a tenant or of a provider. */
  scope: string;
  /** The slot. */
  member: string;
}

/** Where slots are held, on a server. */
export interface SlotPlaces {
  /** Holds these for `slotMs` from now, also those that are not there. */
  hold(places: readonly HeldPlace[], slotMs: number): Promise<unknown>;
  /** Gives these back. */
  remove(places: readonly HeldPlace[]): Promise<unknown>;
}

/**
 * The slots of this process.
 *  A1  `held` has those that were not left, each with its scopes. All are renewed every third of `slotMs`. Renewing adds
 *      missing ones, so slots granted while the server was unavailable, or lost with its data, count again.
 *  A2  An answer may come after its slot was left, when the server is slow. Therefore whatever adds a slot checks
 *      afterwards whether it is still held, and removes it if not.
 */
export function createHeldSlots({
  places: server,
  ask,
  slotMs,
}: {
  places: SlotPlaces;
  ask: AskServer;
  slotMs: number;
}) {
  const held = new Map<string, readonly string[]>();
  let timer: NodeJS.Timeout | null = null;
  let isRenewing = false;
  const placesOf = (slot: string, scopes: readonly string[]) =>
    scopes.map((scope) => ({ scope, member: slot }));

  async function renew(): Promise<void> {
    if (isRenewing || held.size === 0) return;
    isRenewing = true;
    const slots = [...held];
    const removeAll = () => Promise.all(slots.map(([slot, scopes]) => removeLeft(slot, scopes)));
    const places = slots.flatMap(([slot, scopes]) => placesOf(slot, scopes));
    await ask(
      () => server.hold(places, slotMs),
      () => void removeAll(),
    );
    await removeAll();
    isRenewing = false;
  }

  async function leave(slot: string): Promise<void> {
    const scopes = held.get(slot);
    if (scopes && held.delete(slot)) await removeLeft(slot, scopes);
  }

  /** Removes a slot that is not held. One that cannot be removed now lapses. */
  async function removeLeft(slot: string, scopes: readonly string[]): Promise<void> {
    if (!held.has(slot)) await ask(() => server.remove(placesOf(slot, scopes)));
  }

  return {
    removeLeft,
    /** Holds a slot until what it returns is called. */
    hold(slot: string, scopes: readonly string[]): () => Promise<void> {
      held.set(slot, scopes);
      timer ??= setInterval(() => void renew(), slotMs / 3).unref();
      return () => leave(slot);
    },
    async close(): Promise<void> {
      if (timer) clearInterval(timer);
      await Promise.all([...held.keys()].map(leave));
    },
  };
}
