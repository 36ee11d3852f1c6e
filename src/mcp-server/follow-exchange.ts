import { wholeExchange } from '../library/asking/chat.ts';
import { createProgress } from '../doors/mcp/progress.ts';
import type { ExchangeId } from '../doors/mcp/exchange-id.ts';
import { type Outcome, outcomeOf, workingOn } from '../doors/mcp/outcome.ts';
import { createSpeech } from '../doors/speech.ts';
import type { McpHost } from './host.ts';

interface Follow {
  waitMs: number;
  /** Ends when the client has cancelled its request. */
  signal: AbortSignal;
  /** Receives short lines of what happens. */
  report: (line: string) => void;
}

/** Even a client that does not want to wait is told what is there already, ms. */
const LEAST_WAIT_MS = 500;

/** What comes of a message or a command, or `working` if it takes longer than `waitMs`. */
export async function followExchange(
  host: Pick<McpHost, 'troupe' | 'clock' | 'ends' | 'changes'>,
  id: ExchangeId,
  { waitMs, signal, report }: Follow,
): Promise<Outcome> {
  const nameOf = (agent: string) => host.troupe.agents.find((each) => each.id === agent)?.name ?? agent;
  const textOf = createSpeech(id.conversation, nameOf);
  const linesOf = createProgress(nameOf);
  let said = '';
  const late = new AbortController();
  const done = new AbortController();
  const gone = host.ends ? AbortSignal.any([signal, host.ends]) : signal;
  void host.clock.sleep(Math.max(waitMs, LEAST_WAIT_MS), done.signal).then(() => late.abort());
  try {
    const going = wholeExchange(host, id, AbortSignal.any([gone, late.signal]));
    for (;;) {
      const next = await going.next();
      if (next.done) return outcomeOf(id, next.value, nameOf);
      said += textOf(next.value);
      for (const line of linesOf(next.value)) report(line);
    }
  } catch (error) {
    if (late.signal.aborted && !gone.aborted) return workingOn(id, said);
    throw error;
  } finally {
    done.abort();
  }
}
