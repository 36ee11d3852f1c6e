import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { Clock } from '../../clock.ts';

/** Answers, notices and lines that are none: more in a second is no talk. */
const MAX_MESSAGES = 2_000;
const WINDOW_MS = 1_000;

/**
 * The same transport, which counts what a server says before anybody looks at it, and passes on nothing more once it says
 * too much: each message is checked, and a flood of them would leave no time for anybody else.
 */
export function boundMessages(inner: Transport, clock: Clock, onFlood: (why: Error) => void): Transport {
  let since = clock.monotonic();
  let count = 0;
  let isOver = false;

  function isCounted(): boolean {
    if (isOver) return false;
    const now = clock.monotonic();
    if (now - since >= WINDOW_MS) [since, count] = [now, 0];
    count += 1;
    if (count <= MAX_MESSAGES) return true;
    isOver = true;
    onFlood(new Error(`it sent more than ${MAX_MESSAGES} messages in a second`));
    return false;
  }

  const outer: Transport = {
    start() {
      inner.onmessage = (message, extra) => {
        if (isCounted()) outer.onmessage?.(message, extra);
      };
      inner.onerror = (error) => {
        if (isCounted()) outer.onerror?.(error);
      };
      inner.onclose = () => outer.onclose?.();
      return inner.start();
    },
    send: (message, options) => inner.send(message, options),
    close: () => inner.close(),
    setProtocolVersion: (version) => inner.setProtocolVersion?.(version),
  };
  return outer;
}
