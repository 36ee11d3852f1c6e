import { isAbout } from '../../events/aspects.ts';
import type { Event, EventOf, TurnId } from '../../events/index.ts';
import {
  type AgentView,
  MAX_CALLS,
  MAX_PARTS,
  MAX_PENDING,
  MAX_TURNS,
  type TokenCounts,
  type TurnView,
} from './model.ts';
import {
  addTokens,
  agentOf,
  changeAgent,
  countsOf,
  type Draft,
  meetAgent,
  NO_TOKENS,
  own,
  ownTotals,
} from './draft.ts';
import { oneLine } from './words.ts';
import { missedBy, triggerOf } from './fold-talk.ts';

/** Folds the turns: their inputs, work and end. The log has the steps of a turn only after its commit. */
export function foldTurn(draft: Draft, event: Event): void {
  if (!isAbout(event, 'turn')) return;
  switch (event.kind) {
    case 'turn.started':
      return begin(draft, event);
    case 'turn.done':
    case 'turn.failed':
    case 'turn.aborted':
      return end(draft, event);
    case 'turn.steered':
      return steer(draft, event);
    case 'step':
      return changeTurn(draft, event, (turn) => foldStep(turn, event));
    case 'tool.result':
      return changeTurn(draft, event, (turn) => foldCall(turn, event));
    case 'message':
      return changeTurn(draft, event, () => ({ said: oneLine(event.body.content) }));
    case 'handoff':
      return changeTurn(draft, event, () => ({ handoff: { to: event.to, seq: event.seq } }));
    case 'error':
      return foldError(draft, event);
    case 'command':
      return foldRetry(draft, event);
  }
}

function begin(draft: Draft, event: EventOf<'turn.started'>): void {
  const { turn: id, author, seq, at, body } = event;
  if (id === undefined || author.kind !== 'agent') return;
  const agent = meetAgent(draft, author.id, event);
  // A restart after a crash writes no second start, so a repeated one is not legal.
  if (!agent || agent.turn === id || indexOf(draft, id) >= 0) return;
  if (agent.turn !== null) abandon(draft, agent, event);
  const { upTo, inputs, join } = body;
  const { talk } = draft.next;
  const isFresh = join === 'fresh' && agent.turns === 0;
  add(draft, {
    id,
    agent: agent.id,
    number: Number(/:(\d+)$/.exec(id)?.[1] ?? agent.turns + 1),
    status: 'running',
    from: seq,
    to: null,
    queuedAt: timeOf(draft, inputs[0]),
    startedAt: at,
    endedAt: null,
    upTo,
    inputs: inputs.slice(0, MAX_PENDING),
    trigger: triggerOf(talk, inputs[0]),
    missed: isFresh ? null : missedBy(talk, agent.id, { seen: agent.seen, upTo, inputs }),
    steps: 0,
    calls: [],
    callCount: 0,
    tokens: NO_TOKENS,
    retries: 0,
    error: null,
    handoff: null,
    retried: null,
    said: '',
    times: null,
  });
  changeAgent(draft, agent.id, {
    turn: id,
    turns: agent.turns + 1,
    seen: Math.max(agent.seen, upTo),
  });
  const totals = ownTotals(draft);
  totals.turns += 1;
  totals.running += 1;
}

/** The time of an input that is still kept. */
function timeOf({ next: { arrows } }: Draft, input: number | undefined): number | null {
  return arrows.findLast(({ seq }) => seq === input)?.at ?? null;
}

type Ending = EventOf<'turn.done' | 'turn.failed' | 'turn.aborted'>;

function end(draft: Draft, event: Ending): void {
  const { author, turn: id, seq, at, body } = event;
  const agent = author.kind === 'agent' ? meetAgent(draft, author.id, event) : null;
  if (!agent) return;
  const pending = withoutAny(agent.pending, body.covers);
  // An end without a start settles the inputs and does not count as a turn.
  if (id === undefined || agent.turn !== id) return changeAgent(draft, agent.id, { pending });
  const failed = event.kind === 'turn.failed';
  const tokens = takenBy(body);
  const error = failed ? { code: event.body.code, message: event.body.message, seq } : null;
  changeTurn(draft, event, (turn) => ({
    status: failed ? 'failed' : event.kind === 'turn.done' ? 'done' : 'aborted',
    to: seq,
    endedAt: at,
    steps: event.kind === 'turn.done' ? event.body.steps : turn.steps,
    tokens,
    error,
    // The failure that ended the turn was not retried.
    retries: error && turn.error?.code === error.code ? turn.retries - 1 : turn.retries,
    said: turn.said === '' && 'partial' in body ? oneLine(body.partial) : turn.said,
    times: body.times ? { ...body.times, parts: body.times.parts.slice(0, MAX_PARTS) } : null,
  }));
  changeAgent(draft, agent.id, {
    pending,
    turn: null,
    lastTurn: id,
    failed: agent.failed + (failed ? 1 : 0),
    tokens: addTokens(agent.tokens, tokens),
    problem: error,
  });
  const totals = ownTotals(draft);
  totals.running -= 1;
  totals.failed += failed ? 1 : 0;
  totals.tokens = addTokens(totals.tokens, tokens);
}

/** What vendors have reported, and our own count of calls that they did not report. */
function takenBy({ usage, others = [] }: Ending['body']): TokenCounts {
  const uncounted = others.filter(({ estimated }) => estimated);
  return uncounted.reduce(
    (sum, each) => addTokens(sum, countsOf(each.usage)),
    usage ? countsOf(usage) : NO_TOKENS,
  );
}

/** A copied log may end inside a turn and continue with another one. */
function abandon(draft: Draft, { id, turn }: AgentView, { seq, at }: Event): void {
  if (turn === null) return;
  changeTurn(draft, { turn }, () => ({ status: 'aborted', to: seq, endedAt: at }));
  changeAgent(draft, id, { turn: null, lastTurn: turn });
  ownTotals(draft).running -= 1;
}

/** New inputs between two steps of a turn. */
function steer(draft: Draft, event: EventOf<'turn.steered'>): void {
  const { inputs, upTo } = event.body;
  changeTurn(draft, event, (turn) => ({
    inputs: [...turn.inputs, ...inputs].slice(0, MAX_PENDING),
    upTo: Math.max(turn.upTo, upTo),
  }));
  const seen = agentOf(draft, event.author.id)?.seen ?? 0;
  changeAgent(draft, event.author.id, { seen: Math.max(seen, upTo) });
}

/** Resuming a failed agent also retries its turn. */
function foldRetry(draft: Draft, { seq, body }: EventOf<'command'>): void {
  if (body.command !== 'retry' && body.command !== 'resume') return;
  changeTurn(draft, { turn: body.turn }, () => ({ retried: seq }));
}

/** A failed model call. Either the call is repeated, or the turn fails and its end has the error. */
function foldError(draft: Draft, { author, turn, seq, body }: EventOf<'error'>): void {
  const agent = author.kind === 'agent' ? agentOf(draft, author.id) : null;
  if (!agent || turn === undefined || agent.turn !== turn) return;
  const { code, message } = body;
  const problem = { code, message, seq };
  changeTurn(draft, { turn }, ({ retries }) => ({ retries: retries + 1, error: problem }));
  changeAgent(draft, agent.id, { problem });
}

/** Changes a turn that is still kept. */
function changeTurn(
  draft: Draft,
  { turn: id }: { turn?: TurnId | undefined },
  change: (turn: TurnView) => Partial<TurnView>,
): void {
  const index = id === undefined ? -1 : indexOf(draft, id);
  const turn = draft.next.turns[index];
  if (turn) own(draft, 'turns')[index] = { ...turn, ...change(turn) };
}

function indexOf({ next }: Draft, id: TurnId): number {
  const { turns } = next;
  for (let index = turns.length - 1; index >= 0; index--) if (turns[index]?.id === id) return index;
  return -1;
}

/** Adds a turn. If there are too many, drops the oldest that has ended, or else the oldest. */
function add(draft: Draft, turn: TurnView): void {
  const turns = own(draft, 'turns');
  turns.push(turn);
  while (turns.length > MAX_TURNS) {
    const ended = turns.findIndex(({ status }) => status !== 'running');
    turns.splice(Math.max(0, ended), 1);
  }
}

function withoutAny(pending: number[], covers: readonly number[]): number[] {
  if (covers.length === 0 || pending.length === 0) return pending;
  const settled = new Set(covers);
  const left = pending.filter((seq) => !settled.has(seq));
  return left.length === pending.length ? pending : left;
}

/** A step with its calls, whose outcome is still unknown. */
function foldStep(turn: TurnView, { seq, body }: EventOf<'step'>): Partial<TurnView> {
  const calls = body.calls.map(({ id, name }) => ({ call: id, name, outcome: null, seq, ran: null }));
  return {
    steps: turn.steps + 1,
    calls: [...turn.calls, ...calls].slice(-MAX_CALLS),
    callCount: turn.callCount + calls.length,
    said: turn.said === '' ? oneLine(body.content) : turn.said,
  };
}

/** The outcome of a call. An approved call was made by an earlier turn and is new in this one. */
function foldCall(turn: TurnView, { seq, body }: EventOf<'tool.result'>): Partial<TurnView> {
  const { call, name, outcome, ran = null } = body;
  const index = turn.calls.findLastIndex((each) => each.call === call);
  const known = turn.calls[index];
  if (known) return { calls: turn.calls.with(index, { ...known, outcome, ran }) };
  if (turn.callCount > turn.calls.length) return {};
  return {
    calls: [...turn.calls, { call, name, outcome, seq, ran }].slice(-MAX_CALLS),
    callCount: turn.callCount + 1,
  };
}
