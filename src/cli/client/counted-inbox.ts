import { systemClock } from '../../base/clock.ts';
import type { Inbox } from '../../http/inbox.ts';

/** Longest wait of a command for the conversations that are not counted yet, and between two looks, ms. */
const READ_WITHIN_MS = 4_000;
const LOOK_MS = 100;

/**
 * Reads the inbox until it has every conversation. Another process may be reading them, or one that has just ended may
 * hold the reading for a moment.
 */
export async function countedInbox(read: () => Promise<Inbox>): Promise<Inbox> {
  const latest = systemClock.now() + READ_WITHIN_MS;
  for (;;) {
    const inbox = await read();
    if (inbox.unread === 0 || systemClock.now() > latest) return inbox;
    await systemClock.sleep(LOOK_MS);
  }
}
