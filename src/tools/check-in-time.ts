import type { Clock } from '../base/clock.ts';
import type { Tool } from './tool.ts';

/** Checks arguments in the time of a call: a check may ask other services. Null: it took longer, or was aborted. */
export async function checkInTime(
  tool: Tool,
  args: unknown,
  { clock, signal }: { clock: Clock; signal?: AbortSignal },
): Promise<Awaited<ReturnType<Tool['check']>> | null> {
  const over = new AbortController();
  try {
    const ends = signal ? AbortSignal.any([over.signal, signal]) : over.signal;
    return (await Promise.race([tool.check(args), clock.sleep(tool.timeoutMs, ends)])) ?? null;
  } finally {
    over.abort();
  }
}
