import { isAbout } from '../../events/aspects.ts';
import type { Event, EventOf } from '../../events/index.ts';
import { type CompactionView, MAX_COMPACTIONS } from './model.ts';
import { addTokens, agentOf, changeAgent, countsOf, type Draft, own, ownTotals } from './draft.ts';

type Note = EventOf<
  | 'compaction.started'
  | 'compaction.pruned'
  | 'compaction.summarising'
  | 'compaction.done'
  | 'compaction.failed'
>;

/** Folds the compactions: at most one at a time for each agent. */
export function foldCompaction(draft: Draft, event: Event): void {
  if (isAbout(event, 'turnEnd')) return breakOff(draft, event);
  if (!isAbout(event, 'compaction')) return;
  switch (event.kind) {
    case 'compaction.started':
      return add(draft, opened(event));
    case 'compaction.summarising':
    case 'compaction.pruned':
    case 'compaction.done':
    case 'compaction.failed':
      return goOn(draft, event);
    case 'compaction':
      return foldSummary(draft, event);
    case 'baseline':
      return adopt(draft, event);
  }
}

function breakOff(draft: Draft, { author, at }: Event): void {
  change(draft, author.id, () => ({ phase: 'failed', message: 'the turn ended first', endedAt: at }));
}

function opened({ seq, at, body }: Note): CompactionView {
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

/** A later note of a compaction. If the log lacks its start, this note opens it. */
function goOn(draft: Draft, event: Note): void {
  const { agent, strategy, range, tokens, message } = event.body;
  if (openIndex(draft, agent) < 0) add(draft, opened(event));
  const isDone = event.kind === 'compaction.done' || event.kind === 'compaction.pruned';
  // With a strategy, only this strategy has failed and the next one is tried.
  const isOver = isDone || (event.kind === 'compaction.failed' && strategy === undefined);
  const reached = event.kind.slice('compaction.'.length) as CompactionView['phase'];
  change(draft, agent, (known) => ({
    phase: isOver || event.kind === 'compaction.summarising' ? reached : known.phase,
    strategy: strategy ?? known.strategy,
    range: range ?? known.range,
    tokens: { before: known.tokens.before, after: tokens.after },
    reduced: isDone ? reduction(known.tokens.before, tokens.after) : null,
    message: message ?? (isDone ? null : known.message),
    endedAt: isOver ? event.at : null,
  }));
  if (isDone) ownTotals(draft).compactions += 1;
}

function reduction(before: number, after: number | null): number | null {
  if (after === null || before <= 0) return null;
  return Math.max(0, Math.round((100 * (before - after)) / before));
}

/** The summary itself, which other agents may adopt. A log without notes has only this event. */
function foldSummary(draft: Draft, { id, seq, at, body }: EventOf<'compaction'>): void {
  const { by, reason, strategy, upTo, tokens, usage } = body;
  const range = { from: 1, upTo };
  if (usage) {
    const counts = countsOf(usage);
    const totals = ownTotals(draft);
    totals.tokens = addTokens(totals.tokens, counts);
    const agent = agentOf(draft, by);
    if (agent) changeAgent(draft, by, { tokens: addTokens(agent.tokens, counts) });
  }
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
