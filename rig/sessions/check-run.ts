import { type Event, eventOf } from '../../src/events/index.ts';
import type { Seen } from './fake-vendor.ts';
import { markersIn } from './markers.ts';

/** Marks the requests for summaries that Troupe makes itself. */
const TROUPES_OWN = '<transcript-';
/** Claude Code drops the beginning if even its request for a summary does not fit, and says so. */
const CUT_BY_PROGRAM = '[earlier conversation truncated for compaction retry]';

interface Turn {
  id: string;
  after: number;
  upTo: number;
  isDone: boolean;
  /**
   * Seq up to which Troupe itself had summarised by the end of the turn. Earlier messages may or may not be shown.
   */
  summarised: number;
}

/**
 * Compares the requests to the API with the log of the conversation:
 *  R1  A request shows no marker twice.
 *  R2  It shows once every message that its turn had to see: those of others up to the turn's pinned seq, and the
 *      agent's own replies. After the program's own compaction, only messages that are new to the turn are required, and
 *      of those only the ones missing from its request for the summary: some programs compact between two steps of a
 *      turn. If a program says that it had to cut that request, it may lose what it had been sent by then.
 *  R3  Every answered turn had a request that showed its new messages.
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
