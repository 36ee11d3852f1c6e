import { wholeExchange, type ChatChange } from '../troupe.ts';
import type { ExchangeId } from './exchange-id.ts';
import { type Outcome, outcomeOf, workingOn } from './outcome.ts';
import { createSpeech } from '../speech.ts';
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

/** Longest line, in characters. A line is told as soon as it has so many, or the words end or break. */
const LINE_CHARS = 160;

/**
 * What happens, as short lines for somebody who waits: words as they come, and calls. Owns the words that are not told
 * yet. `nameOf` gives the name of an agent.
 */
export function createProgress(nameOf: (agent: string) => string) {
  /** Open text blocks: who speaks, and what was not told yet. */
  const open = new Map<string, { agent: string; rest: string }>();
  const calls = new Map<string, string>();

  function cut(id: string, isEnd: boolean): string[] {
    const block = open.get(id);
    if (!block) return [];
    const lines: string[] = [];
    const take = (length: number) => {
      const line = block.rest.slice(0, length).trim();
      block.rest = block.rest.slice(length);
      if (line !== '') lines.push(`${nameOf(block.agent)}: ${line}`);
    };
    for (;;) {
      const end = block.rest.indexOf('\n');
      if (end >= 0 && end < LINE_CHARS) take(end + 1);
      else if (block.rest.length >= LINE_CHARS) take(LINE_CHARS);
      else break;
    }
    if (isEnd) {
      take(block.rest.length);
      open.delete(id);
    }
    return lines;
  }

  function wordsIn(change: ChatChange): string[] {
    if (change.type === 'block.start' && change.block.kind === 'text')
      open.set(change.block.id, { agent: change.block.agent, rest: '' });
    if (change.type === 'void') for (const id of change.ids) open.delete(id);
    if (change.type === 'block.end') return cut(change.id, true);
    const block = change.type === 'block.delta' ? open.get(change.id) : undefined;
    if (change.type !== 'block.delta' || !block) return [];
    block.rest += change.text;
    return cut(change.id, false);
  }

  function callsIn(change: ChatChange): string[] {
    if (change.type === 'call.start')
      calls.set(change.call.id, `${nameOf(change.call.agent)} calls ${change.call.name}`);
    if (change.type === 'call.ready') return lineOf(calls.get(change.id));
    const text = change.type === 'call.progress' ? change.text : undefined;
    if (change.type !== 'call.progress' || !text) return [];
    return lineOf(`${calls.get(change.id) ?? ''}: ${text}`);
  }

  return (change: ChatChange): string[] => [...wordsIn(change), ...callsIn(change)];
}

function lineOf(line: string | undefined): string[] {
  return line ? [line.slice(0, LINE_CHARS).toWellFormed()] : [];
}
