import type { ServerContext } from '@modelcontextprotocol/server';

/** Tells a client what happens, if it has asked for that. */
export interface ProgressReport {
  report: (line: string) => void;
  /** Resolves when all was sent: a client hears nothing of a call after its result. */
  told: () => Promise<unknown>;
}

export function progressOf({ mcpReq }: ServerContext): ProgressReport {
  const progressToken = mcpReq._meta?.progressToken;
  let progress = 0;
  let last: Promise<unknown> = Promise.resolve();
  return {
    report(message) {
      if (progressToken === undefined) return;
      progress += 1;
      const sent = mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress, message },
      });
      // A client that has left is noticed by the signal of the request.
      last = Promise.all([last, sent.catch(() => undefined)]);
    },
    told: () => last,
  };
}
