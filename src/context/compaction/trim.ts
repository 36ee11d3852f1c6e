import type { Event, EventDraft, EventId } from '../../events/index.ts';
import { collectFactsSteps } from '../extract/collect-facts.ts';
import { gist, headTail } from '../extract/cut-text.ts';
import { keyMessageSteps } from '../extract/key-messages.ts';
import { renderFacts } from '../extract/render-facts.ts';
import { lineTokens, linesOf, type Slot } from '../slot.ts';
import type { Steps } from '../steps.ts';
import type { View } from '../view.ts';
import { choosePrune, oldMemories } from './prune.ts';
import { type CompactionPlan, NO_PLAN, withPlan } from './plan.ts';
import { type CompactionPolicy, isWithin, type Room, sizeIn } from './policy.ts';

interface TrimInput {
  view: View;
  plan: CompactionPlan;
  room: Room;
  policy: CompactionPolicy;
  /** Size at which the running turn is short enough. */
  limit: number;
  /** Output of the running turn so far. */
  outputs: readonly EventDraft[];
  count: (text: string) => number;
}

/** Shares of the available tokens: newest outputs, newest steps at least, and single texts when all else is gone. */
const OUTPUTS_SHARE = 0.05;
const STEPS_SHARE = 0.15;
const PREFIX_SHARE = 0.1;
const TEXT_SHARES = [0.3, 0.15, 0.04];
const LEAST_TEXT_TOKENS = 80;
/** Cost of shortening and counting one text, in characters. */
const CUT_WORK = 16_384;

/**
 * The last resort: prunes tool outputs of the running turn and all old memories, then replaces its early steps by a
 * text, then shortens long texts. Each stage runs only while the prompt is too long. Null if nothing is left to do.
 */
export function* planTrim(input: TrimInput): Steps<CompactionPlan | null> {
  const { room, limit } = input;
  const stages = [
    { stage: pruneDeep, limit },
    { stage: replaceEarlySteps, limit },
    // Texts are shortened only for a request that is too long.
    { stage: shorten, limit: room.trigger },
  ];
  let { plan } = input;
  for (const { stage, limit: enough } of stages) {
    const view = withPlan(input.view, plan);
    if (plan !== input.plan && isWithin(view, room, enough)) continue;
    plan = (yield* stage({ ...input, plan }, view)) ?? plan;
  }
  return plan === input.plan ? null : plan;
}

/** The oldest first, down to the target. Never results of the last step: the agent has not read them yet. */
function* pruneDeep({ plan, policy, room }: TrimInput, view: View): Steps<CompactionPlan | null> {
  const unread = newestResults(view);
  const prune = { ...policy.prune, turns: 0, protectTokens: Math.floor(room.available * OUTPUTS_SHARE) };
  const deep = { ...policy, prune };
  const memories = oldMemories(view, deep);
  yield view.slots.length;
  const forgotten = [...plan.forgotten, ...memories];
  const rest = withPlan(view, { ...NO_PLAN, forgotten: memories });
  const { events } = choosePrune(rest, deep, sizeIn(rest, room) - room.target);
  const old = events.filter((event) => !unread.has(event));
  if (old.length + memories.length === 0) return null;
  return { ...plan, pruned: [...plan.pruned, ...old], forgotten };
}

/** Results of the step at the end of the prompt. */
function newestResults({ slots, turn }: View): ReadonlySet<EventId | null> {
  const end = slots.findLastIndex(({ message }) => message.role !== 'user') + 1;
  const from = slots.slice(0, end).findLastIndex(({ message }) => message.role !== 'tool') + 1;
  // Steered inputs may stand behind the results. Results before the turn's own input are of an earlier turn.
  return new Set(from < (turn?.begins ?? 0) ? [] : slots.slice(from, end).map(({ event }) => event));
}

/** Replaces the early steps of a turn that outgrew its window by a text. The newest stay. */
function* replaceEarlySteps(
  { plan, room, outputs, count }: TrimInput,
  view: View,
): Steps<CompactionPlan | null> {
  const { turn } = view;
  if (!turn) return null;
  const steps = keptFrom(view, turn.id, stepsRoom(view, turn.id, room));
  if (steps <= (plan.turn?.steps ?? 0)) return null;
  const early = earlySteps(outputs, steps).map((draft, index) => asLogged(draft, index + 1));
  const budget = Math.floor(room.available * PREFIX_SHARE);
  const facts = renderFacts(yield* collectFactsSteps(early, null), Math.floor(budget / 3), count);
  const { quotes } = yield* keyMessageSteps({
    events: early,
    previous: null,
    budget: Math.floor(budget / 2),
    count,
  });
  const text = [...quotes.map((quote) => `- ${quote.text}`), facts].filter(Boolean).join('\n');
  return { ...plan, turn: { id: turn.id, steps, text: text || '(nothing of note)' } };
}

/** The newest steps have the room that everything else leaves up to the target. */
function stepsRoom(view: View, turn: string, room: Room): number {
  const ofTurn = view.slots.filter(({ step }) => step?.turn === turn);
  const size = ofTurn.reduce((sum, { tokens }) => sum + tokens, 0);
  const free = room.target - (sizeIn(view, room) - size) - room.available * PREFIX_SHARE;
  return Math.max(room.available * STEPS_SHARE, free);
}

/** The first step to keep: the newest within the budget, and always the last one. */
function keptFrom({ slots }: View, turn: string, budget: number): number {
  const sizes = new Map<number, number>();
  for (const { step, tokens } of slots) {
    if (step?.turn === turn) sizes.set(step.index, (sizes.get(step.index) ?? 0) + tokens);
  }
  let left = budget;
  let first: number | null = null;
  for (const [index, tokens] of [...sizes].toReversed()) {
    left -= tokens;
    if (left < 0 && first !== null) break;
    first = index;
  }
  return first ?? 0;
}

/** The first steps of a turn's output, with their results. */
export function earlySteps(outputs: readonly EventDraft[], steps: number): EventDraft[] {
  return outputs.filter((draft) => stepOf(draft) < steps);
}

function stepOf(draft: EventDraft): number {
  if (draft.kind === 'step') return draft.body.index;
  const match = draft.kind === 'tool.result' ? /:result:(\d+)\./.exec(draft.id) : null;
  return match ? Number(match[1]) : Infinity;
}

function asLogged(draft: EventDraft, seq: number): Event {
  const nowhere = { tenant: 'none', conversation: 'none', at: 0, tokens: 0 };
  return { ...nowhere, ...draft, seq } as Event;
}

/** Shortens long texts, no more than needed, but never inputs of the running turn. */
function* shorten({ plan, room, count, view: whole }: TrimInput, view: View): Steps<CompactionPlan | null> {
  let shorter: CompactionPlan | null = null;
  for (const share of TEXT_SHARES) {
    const most = Math.max(LEAST_TEXT_TOKENS, Math.floor(room.available * share));
    const trimmed: { event: EventId; text: string }[] = [];
    for (const slot of view.slots) trimmed.push(...(yield* shortened(slot, most, view, count)));
    if (trimmed.length === 0) continue;
    shorter = { ...plan, trimmed: [...plan.trimmed, ...trimmed] };
    if (isWithin(withPlan(whole, shorter), room, room.target)) break;
  }
  return shorter;
}

function* shortened(
  { part, message, event, tokens, layer }: Slot,
  most: number,
  { turn }: View,
  count: (text: string) => number,
): Steps<{ event: EventId; text: string }[]> {
  if (tokens <= most * 1.2 || layer === 'summary') return [];
  const cut = (text: string) => headTail(gist(text), most, count) || '[left out to make room]';
  if (!part) {
    const isCall = message.role === 'assistant' && (message.calls?.length ?? 0) > 0 && message.content === '';
    if (event === null || isCall) return [];
    yield CUT_WORK;
    return [{ event, text: cut(message.content) }];
  }
  const long = linesOf(part).filter((line) => lineTokens(line) > most && !turn?.inputs.has(line.seq));
  const texts: { event: EventId; text: string }[] = [];
  for (const line of long) {
    texts.push({ event: line.event, text: cut(line.content.slice(line.from, line.to)) });
    yield CUT_WORK;
  }
  return texts;
}
