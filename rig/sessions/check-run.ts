import { type Event, eventOf } from '../../src/events/index.ts';
import type { Seen } from './fake-vendor.ts';
import { markersIn } from './markers.ts';

/** In requests for summaries that Troupe makes and not a program. */
const TROUPES_OWN = '<transcript-';
/** Claude Code leaves out the beginning where not even its request for a summary fits, and says so. */
const CUT_BY_PROGRAM = '[earlier conversation truncated for compaction retry]';

interface Turn {
  id: string;
  after: number;
  upTo: number;
  isDone: boolean;
  /** Up to where Troupe itself had summarised by the end of it: what is before may be shown, or found again, or not. */
  summarised: number;
}

/**
 * Holds what the API was sent against the log of the conversation:
 *  R1  A request shows no marker twice.
 *  R2  It shows every message that its turn was to see, once: of others up to where the turn was pinned, and the agent's
 *      own replies. Of what a program has put into a summary of its own, only what is new to the turn; and of that only what
 *      it did not show when it asked for the summary: some programs shorten their memory between two steps of a turn.
 *      Where a program says that it had to cut that request, what it had been sent by then is its own to lose.
 *  R3  Every turn that was answered had a request that showed what was new to it.
 */
export function checkRun(events: readonly Event[], agent: string, seen: readonly Seen[]): string[] {
  const seqs = new Map<string, number>();
  const own = new Set<string>();
  for (const event of events) {
    const message = eventOf(event, 'message');
    for (const marker of message ? markersIn(message.body.content) : []) {
      seqs.set(marker, event.seq);
      if (event.author.id === agent) own.add(marker);
    }
  }
  const turns = turnsOf(events, agent);
  const answered = new Set<string>();
  const found: string[] = [];
  const inSummary = new Set<string>();
  const shown = new Set<string>();
  for (const [number, { text, isCompaction, isShortened }] of seen.entries()) {
    if (isCompaction) {
      if (text.includes(TROUPES_OWN)) continue;
      for (const marker of text.includes(CUT_BY_PROGRAM) ? shown : markersIn(text)) inSummary.add(marker);
      continue;
    }
    for (const marker of markersIn(text)) shown.add(marker);
    const times = Map.groupBy(markersIn(text), (marker) => marker);
    const known = [...times.keys(), ...(isShortened ? inSummary : [])];
    const newest = Math.max(0, ...known.flatMap((marker) => seqs.get(marker) ?? []));
    const turn = turns.find(({ upTo }) => upTo >= newest);
    if (!turn) {
      found.push(`R2 request ${number} is of no turn`);
      continue;
    }
    if (newest > turn.after) answered.add(turn.id);
    for (const [marker, all] of times) {
      const isFree = (seqs.get(marker) ?? Infinity) <= turn.summarised;
      if (all.length > 1 && !isFree) found.push(`R1 request ${number} shows ${marker} ${all.length} times`);
    }
    for (const [marker, seq] of seqs) {
      if (
        seq > turn.upTo ||
        seq <= turn.summarised ||
        (isShortened && (own.has(marker) || seq <= turn.after || inSummary.has(marker))) ||
        times.has(marker)
      )
        continue;
      found.push(`R2 request ${number}, of ${turn.id}, does not show ${marker} (event ${seq})`);
    }
  }
  for (const { id, isDone } of turns)
    if (isDone && !answered.has(id)) found.push(`R3 no request showed what was new to ${id}`);
  return found;
}

function turnsOf(events: readonly Event[], agent: string): Turn[] {
  const done = new Set<string | undefined>(
    events.filter(({ kind }) => kind === 'turn.done').map(({ turn }) => turn),
  );
  const compactions = events.flatMap((event) => {
    const body = eventOf(event, 'compaction')?.body;
    return body ? [{ seq: event.seq, upTo: body.upTo }] : [];
  });
  const all = events.flatMap((event) => eventOf(event, 'turn.started') ?? []);
  const starts = all.filter(({ author }) => author.id === agent);
  return starts.map(({ turn: id = '', body }, index) => {
    const end = starts[index + 1]?.seq ?? Infinity;
    const made = compactions.filter(({ seq }) => seq < end).map((compaction) => compaction.upTo);
    const after = starts[index - 1]?.body.upTo ?? 0;
    return { id, after, upTo: body.upTo, isDone: done.has(id), summarised: Math.max(0, ...made) };
  });
}
