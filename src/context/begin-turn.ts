import type { Event, TurnId, TurnStartedBody } from '../events/index.ts';
import { readerAt, type Reader } from './attribution.ts';
import { closeGroup } from './call-group.ts';
import { estimateFraming } from './estimate-tokens.ts';
import { hashText } from './hash.ts';
import { afterTelling, renderLive, toldUnder } from './live.ts';
import { settle } from './settle.ts';
import { awayBlock, earlierTrigger, handoffBlock, type Part, pushUser, verbatim } from './turn-input.ts';
import type { View } from './view.ts';

/**
 * The input of a turn, in this order: [handoff summary] [while you were away] [earlier triggers] [the trigger + live].
 * A newcomer under `full` gets the history verbatim instead of the block.
 */
export type TurnInput = { id: TurnId } & TurnStartedBody;

/** A request must end in words of somebody else; this stands in where the log has none. */
const NOTHING_SAID: Part = { content: '[nothing new was said: go on]', events: [] };

export function beginTurn(view: View, turn: TurnInput): void {
  closeGroup(view);
  const inputs = new Set(turn.inputs);
  const shown = settle(view, turn.upTo, inputs);
  const reader = readerAt(view, turn.upTo);
  const last = shown.findLast((event) => inputs.has(event.seq) && event.kind !== 'handoff');
  const others = shown.filter((event) => event !== last);
  const newcomer = !view.present;
  const context = newcomer
    ? newcomerParts(others, inputs, reader, turn.join)
    : missedParts(others, inputs, reader);
  const trigger = last ? [verbatim(last, reader)] : [];
  const live = renderLive(turn.live, view.secret, turn.id);
  const parts = hangOnLast([...context, ...trigger], live);

  const begins = view.messages.length;
  const start = { chain: view.chain, tokens: view.tokens };
  for (const part of last ? parts.slice(0, -1) : parts) pushUser(view, part);
  const between = view.tokens;
  // A newcomer has missed nothing: what came before it is its history.
  const chainBefore = newcomer && last ? view.chain : start.chain;
  for (const part of last ? parts.slice(-1) : []) pushUser(view, part);
  const liveTokens = estimateFraming(live.length);
  view.turn = {
    id: turn.id,
    ahead: new Map(),
    begins,
    chainBefore,
    tokens: {
      missed: newcomer ? 0 : between - start.tokens - (last ? 0 : liveTokens),
      trigger: view.tokens - between - (last ? liveTokens : 0),
      live: liveTokens,
    },
    hashes: { missed: hashParts(newcomer ? [] : context), trigger: hashParts(trigger), live: hashText(live) },
  };
  view.told = afterTelling(toldUnder(view.told, turn.baseline), turn.live);
  view.present = true;
}

function hashParts(parts: readonly Part[]): string {
  return hashText(parts.map(({ content }) => content).join('\n'));
}

function newcomerParts(
  others: readonly Event[],
  inputs: ReadonlySet<number>,
  reader: Reader,
  join: TurnInput['join'],
): Part[] {
  const handoffs = others.filter((event) => isHandover(event, inputs));
  const rest = others.filter((event) => !isHandover(event, inputs));
  const seen = join === 'fresh' ? rest.filter((event) => inputs.has(event.seq)) : rest;
  return [
    ...handoffs.map((event) => handoffBlock([event], [], reader)),
    ...seen.map((event) => verbatim(event, reader)),
  ];
}

function missedParts(others: readonly Event[], inputs: ReadonlySet<number>, reader: Reader): Part[] {
  const handoffs = others.filter((event) => isHandover(event, inputs));
  const missed = others.filter((event) => !inputs.has(event.seq));
  const earlier = others.filter((event) => inputs.has(event.seq) && !isHandover(event, inputs));
  const block: Part[] = [];
  if (handoffs.length > 0) block.push(handoffBlock(handoffs, missed, reader));
  else if (missed.length > 0) block.push(awayBlock(missed, reader));
  return [...block, ...earlier.map((event) => earlierTrigger(event, reader))];
}

function isHandover(event: Event, inputs: ReadonlySet<number>): boolean {
  return event.kind === 'handoff' && inputs.has(event.seq);
}

/** The live block hangs on the last message of the input, never on a tool result. */
function hangOnLast(parts: Part[], live: string): Part[] {
  const { content, events } = parts.at(-1) ?? NOTHING_SAID;
  return [...parts.slice(0, -1), { content: live === '' ? content : `${content}\n\n${live}`, events }];
}

/** A preview without a trigger: what waits, as the block it would be. */
export function showWaiting(view: View): void {
  const events = settle(view, view.upTo, new Set());
  if (events.length === 0) return;
  const reader = readerAt(view, view.upTo);
  if (view.present) pushUser(view, awayBlock(events, reader));
  else for (const event of events) pushUser(view, verbatim(event, reader));
}
