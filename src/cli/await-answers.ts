import { type Event, eventOf } from '../events/index.ts';

/**
 * Which answers to a message are still missing. It is answered when every addressed agent has ended a turn that
 * covers it, and so has everyone whom agents have addressed since.
 */
export interface Answers {
  note(event: Event): void;
  /** No answer of this agent will come. */
  giveUp(agent: string, code: string, message: string): void;
  /** Agents whose answer is missing. */
  readonly missing: readonly string[];
  readonly areComplete: boolean;
  readonly replies: readonly Event[];
  readonly failures: readonly { agent: string; code: string; message: string }[];
}

/** Id of the runtime's notice that an agent takes no more turns. */
const SET_ASIDE = /^failed:([^:]+):/;

export function awaitAnswers(sent: Event): Answers {
  const missing = new Set(sent.to.map((agent) => `${agent} ${sent.seq}`));
  const replies: Event[] = [];
  const failures: { agent: string; code: string; message: string }[] = [];

  function end(event: Event, covers: readonly number[]): boolean {
    const found = covers.filter((seq) => missing.delete(`${event.author.id} ${seq}`));
    return found.length > 0;
  }

  function note(event: Event): void {
    if (event.seq <= sent.seq) return;
    if (event.author.kind === 'agent') {
      for (const agent of event.to) missing.add(`${agent} ${event.seq}`);
      if (event.kind === 'message') replies.push(event);
    }
    const done = eventOf(event, 'turn.done');
    if (done) end(done, done.body.covers);
    const failed = eventOf(event, 'turn.failed');
    if (failed && end(failed, failed.body.covers)) {
      const { code, message } = failed.body;
      failures.push({ agent: failed.author.id, code, message });
    }
    const aborted = eventOf(event, 'turn.aborted');
    if (aborted && end(aborted, aborted.body.covers)) {
      const message = `the turn was stopped by ${aborted.body.by}`;
      failures.push({ agent: aborted.author.id, code: 'aborted', message });
    }
    const error = eventOf(event, 'error');
    const setAside = error && SET_ASIDE.exec(error.id)?.[1];
    if (setAside && [...missing].some((key) => key.startsWith(`${setAside} `))) {
      giveUp(setAside, error.body.code, error.body.message);
    }
  }

  function giveUp(agent: string, code: string, message: string): void {
    for (const key of missing) if (key.startsWith(`${agent} `)) missing.delete(key);
    failures.push({ agent, code, message });
  }

  return {
    note,
    giveUp,
    get missing() {
      return [...new Set([...missing].map((key) => key.split(' ')[0] ?? ''))];
    },
    get areComplete() {
      return missing.size === 0;
    },
    replies,
    failures,
  };
}
