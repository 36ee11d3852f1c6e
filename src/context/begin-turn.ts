import type { Event, TurnId, TurnStartedBody } from '../events/index.ts';
import { listHeader, renderOther, type Reader } from './attribution.ts';
import { closeGroup } from './call-group.ts';
import { estimateTokens } from './estimate-tokens.ts';
import { eventText, visibleText } from './event-text.ts';
import { escapeFences, fence } from './fence.ts';
import { fenceKey, hashText } from './hash.ts';
import { afterTelling, renderLive } from './live.ts';
import { pushMessage, type View } from './view.ts';

/**
 * The input of a turn, in this order: [handoff summary] [while you were away] [earlier triggers] [the trigger + live].
 * A newcomer under `full` gets the history verbatim instead of the block.
 */
export type TurnInput = { id: TurnId } & TurnStartedBody;

const FRAME_TOKENS = 4;
const AWAY = 'While you were away:';

interface Part {
  content: string;
  events: readonly Event[];
}

export function beginTurn(view: View, turn: TurnInput): void {
  closeGroup(view);
  const shown = view.pending.filter((event) => event.seq <= turn.upTo);
  view.pending = view.pending.filter((event) => event.seq > turn.upTo);
  const tokens = { missed: 0, trigger: 0, live: 0 };

  const inputs = new Set(turn.inputs);
  const last = shown.findLast((event) => inputs.has(event.seq) && event.kind !== 'handoff');
  const context = contextParts(view, turn, shown, last);
  const trigger: Part[] = last ? [{ content: verbatim(view, last), events: [last] }] : [];
  const live = renderLive(turn.live, view.secret, turn.id);
  tokens.live = estimateTokens(live);
  const parts = hangOnLast([...context, ...trigger], live);
  view.turn = {
    id: turn.id,
    ahead: new Map(),
    begins: view.messages.length,
    chainBefore: view.chain,
    tokens,
    hashes: { missed: hashParts(context), trigger: hashParts(trigger), live: hashText(live) },
  };
  view.turn = {
    id: turn.id,
    ahead: new Map(),
    begins: view.messages.length,
    chainBefore: view.chain,
    tokens,
    hashes: { missed: hashParts(context), trigger: hashParts(trigger), live: hashText(live) },
  };

  const start = view.tokens;
  parts.forEach((part, index) => {
    if (last && index === parts.length - 1) tokens.missed = view.tokens - start;
    pushUser(view, part);
  });
  if (!last) tokens.missed = view.tokens - start - tokens.live;
  tokens.trigger = view.tokens - start - tokens.missed - tokens.live;
  view.told = afterTelling(view.told, turn.live);
  view.present = true;
}

function hashParts(parts: readonly Part[]): string {
  return hashText(parts.map(({ content }) => content).join('\n'));
}

/** What comes before the trigger. */
function contextParts(view: View, turn: TurnInput, shown: readonly Event[], last: Event | undefined): Part[] {
  const inputs = new Set(turn.inputs);
  const handoffs = shown.filter((event) => inputs.has(event.seq) && event.kind === 'handoff');
  const others = shown.filter((event) => event !== last && !handoffs.includes(event));
  const newcomer = !view.present;
  if (newcomer && turn.join !== 'fresh') {
    const opening = handoffs.map((event) => ({ content: handoffBlock(view, [event], []), events: [event] }));
    return [...opening, ...others.map((event) => ({ content: verbatim(view, event), events: [event] }))];
  }
  const missed = newcomer ? [] : others.filter((event) => !inputs.has(event.seq));
  const earlier = others.filter((event) => inputs.has(event.seq));
  const block: Part[] =
    handoffs.length > 0
      ? [{ content: handoffBlock(view, handoffs, missed), events: [...handoffs, ...missed] }]
      : missed.length > 0
        ? [{ content: awayBlock(view, missed), events: missed }]
        : [];
  return [...block, ...earlier.map((event) => ({ content: earlierTrigger(view, event), events: [event] }))];
}

/** The live block hangs on the last message of the input, never on a tool result. */
function hangOnLast(parts: Part[], live: string): Part[] {
  if (live === '') return parts;
  const last = parts.at(-1);
  if (!last) return [{ content: live, events: [] }];
  return [...parts.slice(0, -1), { content: `${last.content}\n\n${live}`, events: last.events }];
}

/** Everything pending as history, one message an event. */
export function showPending(view: View): void {
  const events = view.pending;
  view.pending = [];
  for (const event of events) pushUser(view, { content: verbatim(view, event), events: [event] });
}

/** A preview without a trigger: what is pending, as the block it would be. */
export function showWaiting(view: View): void {
  closeGroup(view);
  const events = view.pending;
  view.pending = [];
  if (events.length === 0) return;
  if (view.present) pushUser(view, { content: awayBlock(view, events), events });
  else for (const event of events) pushUser(view, { content: verbatim(view, event), events: [event] });
}

function pushUser(view: View, { content, events }: Part): void {
  const words = events.reduce((sum, event) => sum + event.tokens, 0);
  const own = events.reduce((sum, event) => sum + textOf(event).length, 0);
  const framing = estimateTokens(content.slice(0, Math.max(0, content.length - own)));
  const seqs = events.map((event) => event.seq);
  pushMessage(view, { role: 'user', content, seqs }, words + framing + FRAME_TOKENS);
}

function textOf(event: Event): string {
  return event.kind === 'tool.result' ? event.body.content : (visibleText(event) ?? '');
}

function reader(view: View): Reader {
  return { agent: view.agent, secret: view.secret, people: view.people };
}

function verbatim(view: View, event: Event): string {
  if (event.kind === 'tool.result') return lateResult(view, event.body.name, event);
  return renderOther(event, textOf(event), reader(view));
}

function lateResult(view: View, name: string, event: Event): string {
  const body = fence('msg', fenceKey(view.secret, `${event.seq}`), escapeFences(textOf(event)));
  return `[late result of ${name}]\n${body}`;
}

function earlierTrigger(view: View, event: Event): string {
  return `(addressed to you earlier)\n${verbatim(view, event)}`;
}

function awayBlock(view: View, events: readonly Event[]): string {
  return fence(
    'missed',
    fenceKey(view.secret, `missed ${events[0]?.seq}`),
    [AWAY, ...away(view, events)].join('\n'),
  );
}

function away(view: View, events: readonly Event[]): string[] {
  return events.map((event) => {
    if (event.kind === 'tool.result') return lateResult(view, event.body.name, event);
    const body = fence('msg', fenceKey(view.secret, `${event.seq}`), escapeFences(textOf(event)));
    return `${minute(event.at)} ${listHeader(event)}\n${body}`;
  });
}

function handoffBlock(view: View, handoffs: readonly Event[], missed: readonly Event[]): string {
  const summaries = handoffs.map((event) => {
    const key = fenceKey(view.secret, `${event.seq}`);
    return `${listHeader(event)} handed this conversation over to you:\n${fence('handoff', key, escapeFences(eventText(event)))}`;
  });
  return missed.length === 0 ? summaries.join('\n') : [...summaries, awayBlock(view, missed)].join('\n');
}

/** UTC to the minute, as 2026-11-21T22:05Z. */
export function minute(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16)}Z`;
}
