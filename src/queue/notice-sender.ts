import type { Notice } from './broadcast.ts';
import { createNoticeOutbox, encodeNotices } from './notice-outbox.ts';
import type { Outage } from './outage.ts';

export interface NoticeSenderOptions {
  /** Identifies this member. */
  process: string;
  /** Sends one message to all members. */
  send: (text: string) => Promise<unknown>;
  /** Why nothing can be sent now; null: it can. */
  whyNot?: () => string | null;
  /** Told whether messages go out. */
  outage: Outage;
  /** Ends the sending. */
  signal: AbortSignal;
  /** How long notes of turns and answers to recalls wait to be joined. */
  coalesceMs?: number | undefined;
  /** The server counts as unavailable when a message takes longer. */
  stallMs?: number | undefined;
  /** Most characters of waiting notes and answers to recalls. */
  maxPendingChars?: number | undefined;
}

const CLOSE_WAIT_MS = 500;
/** What is not of the moment, and never large. */
const URGENT: ReadonlySet<Notice['type']> = new Set(['appended', 'recall', 'stop', 'cancelled']);

/**
 * The publishing side of a broadcast over a server. Nothing is stored.
 *  P1  At most one message is under way. Notices that come meanwhile wait in the outbox and are joined there.
 *  P2  Notes of turns and answers to recalls wait `coalesceMs`. Everything else is sent at once, together with
 *      what came before it.
 *  P3  While the server is unavailable (`whyNot`, or a message under way longer than `stallMs`) notices are dropped.
 */
export function createNoticeSender(options: NoticeSenderOptions) {
  const { outage, signal, whyNot = () => null, coalesceMs = 50, stallMs = 5_000 } = options;
  const outbox = createNoticeOutbox({ maxChars: options.maxPendingChars ?? 1_000_000 });
  const counts = { sent: 0, dropped: 0 };
  let timer: NodeJS.Timeout | null = null;
  let sending: Promise<void> | null = null;
  let sendsSoon = false;
  let isStalled = false;

  function publish(notice: Notice): void {
    if (signal.aborted) return;
    if (isStalled) return void (counts.dropped += 1);
    outbox.add(notice);
    if (!URGENT.has(notice.type)) {
      timer ??= setTimeout(sendWaiting, coalesceMs);
    } else if (!sendsSoon) {
      sendsSoon = true;
      queueMicrotask(send);
    }
  }

  function sendWaiting(): void {
    if (timer) clearTimeout(timer);
    timer = null;
    sendsSoon = true;
    send();
  }

  function send(): void {
    if (sending) return;
    sendsSoon = false;
    if (outbox.isEmpty()) return;
    const notices = outbox.take();
    const why = whyNot();
    if (why !== null) return drop(notices, new Error(why));
    const stall = setTimeout(() => {
      isStalled = true;
      drop(outbox.take(), new Error(`no answer for ${stallMs} ms`));
    }, stallMs).unref();
    sending = options.send(encodeNotices(options.process, notices)).then(
      () => {
        counts.sent += 1;
        outage.end('publishing');
      },
      (error: unknown) => drop(notices, error),
    );
    void sending.finally(() => {
      clearTimeout(stall);
      sending = null;
      isStalled = false;
      if (sendsSoon) send();
    });
  }

  function drop(notices: readonly Notice[], error: unknown): void {
    counts.dropped += notices.length;
    outage.begin('publishing', error);
  }

  /** Sends what waits; returns when it is sent, but soon in any case. */
  async function flush(): Promise<void> {
    sendWaiting();
    if (!sending) return;
    const late = Promise.withResolvers<void>();
    const limit = setTimeout(late.resolve, CLOSE_WAIT_MS);
    await Promise.race([sending, late.promise]);
    clearTimeout(limit);
  }

  return {
    publish,
    flush,
    counts: () => ({ sent: counts.sent, dropped: counts.dropped + outbox.dropped() }),
  };
}
