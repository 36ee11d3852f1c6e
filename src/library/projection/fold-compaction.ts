import { isAbout } from '../../events/aspects.ts';
import type { Event, EventOf } from '../../events/index.ts';
import { hasEnded } from '../../machines/compaction-fold.ts';
import { type CompactionView, MAX_COMPACTIONS } from './model.ts';
import { type Draft, own, ownTotals } from './draft.ts';

type Progress = EventOf<'compaction.progress'>;

/** Folds the compactions: at most one at a time for each agent. */
export function foldCompaction(draft: Draft, event: Event): void {
  if (isAbout(event, 'turnEnd')) return breakOff(draft, event);
  if (!isAbout(event, 'compaction')) return;
  switch (event.kind) {
    case 'compaction.progress':
      return event.body.phase === 'started' ? add(draft, opened(event)) : goOn(draft, event);
    case 'compaction':
      return foldSummary(draft, event);
    case 'baseline':
      return adopt(draft, event);
  }
}

function breakOff(draft: Draft, { author, at }: Event): void {
  change(draft, author.id, () => ({ phase: 'failed', message: 'the turn ended first', endedAt: at }));
}

function opened({ seq, at, body }: Progress): CompactionView {
  const { agent, reason, strategy = null, range = null, tokens, message = null } = body;
  const { before, after } = tokens;
  return {
    seq,
    at,
    agent,
    phase: 'started',
    reason,
    strategy,
    range,
    tokens: { before, after },
    reduced: null,
    summary: null,
    summarySeq: null,
    message,
    endedAt: null,
  };
}

/** Later progress of a compaction. If the log lacks its start, this opens it. */
function goOn(draft: Draft, event: Progress): void {
  const { agent, phase, strategy, range, tokens, message } = event.body;
  if (openIndex(draft, agent) < 0) add(draft, opened(event));
  const isLast = hasEnded(event.body);
  const isDone = isLast && phase !== 'failed';
  change(draft, agent, (known) => ({
    phase: isLast || phase === 'summarising' ? phase : known.phase,
    strategy: strategy ?? known.strategy,
    range: range ?? known.range,
    tokens: { before: known.tokens.before, after: tokens.after },
    reduced: isDone ? reduction(known.tokens.before, tokens.after) : null,
    message: message ?? (isDone ? null : known.message),
    endedAt: isLast ? event.at : null,
  }));
  if (isDone) ownTotals(draft).compactions += 1;
}

function reduction(before: number, after: number | null): number | null {
  if (after === null || before <= 0) return null;
  return Math.max(0, Math.round((100 * (before - after)) / before));
}

/** The summary itself, which other agents may adopt. Its tokens are among those of the turn that made it. A log without notes has only this event. */
function foldSummary(draft: Draft, { id, seq, at, body }: EventOf<'compaction'>): void {
  const { by, reason, strategy, upTo, tokens } = body;
  const range = { from: 1, upTo };
  if (openIndex(draft, by) >= 0) {
    return change(draft, by, () => ({ summary: id, summarySeq: seq, strategy, range }));
  }
  const { before, after } = tokens;
  const message = null;
  const reduced = reduction(before, after);
  const ended = { phase: 'done', reduced, message, endedAt: at } as const;
  add(draft, {
    seq,
    at,
    agent: by,
    reason,
    strategy,
    range,
    tokens: { before, after },
    summary: id,
    summarySeq: seq,
    ...ended,
  });
  ownTotals(draft).compactions += 1;
}

/** An agent may adopt the compaction of another one. */
function adopt(draft: Draft, { author, body }: EventOf<'baseline'>): void {
  const id = body.adopts?.compaction ?? null;
  if (id === null) return;
  const summarySeq = draft.next.compactions.findLast(({ summary }) => summary === id)?.summarySeq ?? null;
  change(draft, author.id, () => ({ summary: id, summarySeq }));
}

function openIndex({ next }: Draft, agent: string): number {
  return next.compactions.findLastIndex((each) => each.agent === agent && each.endedAt === null);
}

function change(draft: Draft, agent: string, what: (known: CompactionView) => Partial<CompactionView>): void {
  const index = openIndex(draft, agent);
  const known = draft.next.compactions[index];
  if (known) own(draft, 'compactions')[index] = { ...known, ...what(known) };
}

function add(draft: Draft, compaction: CompactionView): void {
  const compactions = own(draft, 'compactions');
  compactions.push(compaction);
  if (compactions.length <= MAX_COMPACTIONS) return;
  compactions.splice(
    Math.max(
      0,
      compactions.findIndex(({ endedAt }) => endedAt !== null),
    ),
    1,
  );
}
