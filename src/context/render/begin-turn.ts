import {
  type Event,
  hasAuthority,
  isTaskEnd,
  type TurnId,
  type TurnStartedBody,
  type TurnSteeredBody,
  type Attachment,
  isAbout,
  type KindAbout,
  type MessageBody,
} from '../../events/index.ts';
import { type Reader, readerAt, toldBy } from './lines.ts';
import {
  closeGroup,
  foldOwn,
  blockPart,
  earlierPart,
  historyPart,
  LINE_WORK,
  liveText,
  liveTokens,
  pushUser,
  verbatimPart,
  withLive,
  withoutLive,
} from './messages.ts';
import { withStated, statedUnder } from '../view/live.ts';
import { type Part, type Slot, type InputLayers, isOwn, type View } from '../view/view.ts';
import { atOnce, type Steps } from '../text/steps.ts';
import { HASHED, hashSteps, hashText, NO_TEXT } from '../text/hash.ts';
import { imagesText, visibleText } from '../text/event-text.ts';
import { headTail } from '../text/cut-text.ts';

/**
 * The input of a turn, in this order: handoff, block of missed lines, earlier inputs, the trigger with the live block. A
 * handoff comes after a long block. A newcomer that joins with `full` gets the history verbatim instead of the block.
 */
export type TurnInput = { id: TurnId } & TurnStartedBody;

export function beginTurn(view: View, turn: TurnInput): void {
  atOnce(beginTurnSteps(view, turn));
}

/** Renders the input of a turn. The view is inconsistent until the last step is done, and nothing else may read it before. */
export function* beginTurnSteps(view: View, turn: TurnInput): Steps<void> {
  const { peers = 'user', framing = 'marked' } = turn;
  if (view.group) closeGroup(view);
  view.peers = peers;
  view.framing = framing;
  view.sees = turn.sees;
  const inputs = new Set(turn.inputs);
  const reader = readerAt(view, turn.upTo);
  const others = yield* settlePending(view, reader, inputs);
  const last = takeTrigger(others, inputs);
  const newcomer = !view.present;
  const stated = statedUnder(view.stated, turn.baseline);
  const told = stated.items['time']?.split(' ')[0] ?? null;
  const context =
    others.length === 0 ? [] : yield* contextParts(others, inputs, reader, { told, newcomer, turn });
  const trigger = last
    ? verbatimPart(last, reader)
    : (context.pop() ?? (yield* blockPart([], [], reader, told)));

  const begins = view.slots.length;
  // For a newcomer all earlier events are history and none are missed.
  const start = view.chain;
  let before = told;
  for (const part of context) {
    yield* pushUser(view, part, turn.upTo, newcomer ? 'history' : 'missed');
    before = toldBy({ ...part, told: before });
  }
  const chainBefore = newcomer ? view.chain : start;
  const live = { items: turn.live, turn: turn.id };
  yield* pushUser(view, withLive(trigger, live, before), turn.upTo, last ? 'trigger' : 'missed');
  const input = yield* inputLayers(view.slots.slice(begins), chainBefore, view.secret);
  const isToCompact = view.compactAsked !== null && view.compactAsked <= turn.upTo;
  if (isToCompact) view.compactAsked = null;
  view.turn = { id: turn.id, ahead: new Map(), begins, inputs, isToCompact, input };
  view.note = null;
  view.stated = withStated(stated, turn.live);
  view.present = true;
}

/** Removes the last input from the events and returns it as the trigger. */
function takeTrigger(shown: Event[], inputs: ReadonlySet<number>): Event | undefined {
  for (let at = shown.length - 1; at >= 0; at -= 1) {
    const event = shown[at]!;
    if (inputs.has(event.seq) && event.kind !== 'handoff') return shown.splice(at, 1)[0];
  }
  return undefined;
}

function* newcomerParts(
  others: readonly Event[],
  inputs: ReadonlySet<number>,
  reader: Reader,
  join: TurnInput['join'],
): Steps<Part[]> {
  const handoffs = others.filter((event) => isHandoff(event, inputs));
  const rest = others.filter((event) => !isHandoff(event, inputs));
  const seen = join === 'fresh' ? rest.filter((event) => inputs.has(event.seq)) : rest;
  const given: Part[] = [];
  for (const event of handoffs) given.push(yield* blockPart([event], [], reader));
  const parts: Part[] = [];
  for (const event of seen) {
    const part = inputs.has(event.seq) ? verbatimPart(event, reader) : historyPart(event, reader);
    parts.push(yield* alone(part));
  }
  return isLong(seen) ? [...parts, ...given] : [...given, ...parts];
}

/** If more tokens were missed than this, the block comes before the handoff, so that the handoff is near the end. */
const LONG_TOKENS = 500;

function isLong(missed: readonly Event[]): boolean {
  let tokens = 0;
  for (const event of missed) tokens += event.tokens;
  return tokens > LONG_TOKENS;
}

function* contextParts(
  others: readonly Event[],
  inputs: ReadonlySet<number>,
  reader: Reader,
  { told, newcomer, turn }: { told: string | null; newcomer: boolean; turn: TurnInput },
): Steps<Part[]> {
  if (newcomer) return yield* newcomerParts(others, inputs, reader, turn.join);
  const handoffs = others.filter((event) => isHandoff(event, inputs));
  const missed = others.filter((event) => !inputs.has(event.seq));
  const earlier = others.filter((event) => inputs.has(event.seq) && !isHandoff(event, inputs));
  const parts: Part[] = [];
  const isApart = handoffs.length > 0 && isLong(missed);
  if (isApart) parts.push(yield* blockPart([], missed, reader, told), yield* blockPart(handoffs, [], reader));
  else if (handoffs.length + missed.length > 0) parts.push(yield* blockPart(handoffs, missed, reader, told));
  for (const event of earlier) parts.push(yield* alone(earlierPart(event, reader)));
  return parts;
}

function* alone(part: Part): Steps<Part> {
  yield LINE_WORK + (part.plain?.content.length ?? 0);
  return part;
}

function isHandoff(event: Event, inputs: ReadonlySet<number>): boolean {
  return event.kind === 'handoff' && inputs.has(event.seq);
}

/** A preview without a trigger: shows pending events as the block that the next turn would show. */
export function showWaiting(view: View): void {
  atOnce(showWaitingSteps(view));
}

export function* showWaitingSteps(view: View): Steps<void> {
  const reader = readerAt(view, view.upTo);
  const events = yield* settlePending(view, reader, new Set());
  if (events.length === 0) return;
  if (view.present) {
    yield* pushUser(view, yield* blockPart([], events, reader), view.upTo);
    return;
  }
  for (const event of events) {
    yield* pushUser(view, yield* alone(historyPart(event, reader)), event.seq);
  }
}

/**
 * Renders pending events up to `upTo` as history. Returns the events that the turn itself shows last: those of others after
 * the agent's last own words, and all inputs of the turn.
 */
function* settlePending(view: View, reader: Reader, inputs: ReadonlySet<number>): Steps<Event[]> {
  const reached: Event[] = [];
  const kept: Event[] = [];
  for (const event of view.pending) {
    // The end of a task is shown as an input, together with everything its owner waited for.
    if ('told' in event.body && takeTold(view, event, { upTo: reader.upTo, reached, kept })) continue;
    const isHeld = !inputs.has(event.seq) && isTaskEnd(event);
    (isHeld || event.seq > reader.upTo ? kept : reached).push(event);
  }
  view.pending = kept;
  let waiting: Event[] = [];
  for (const event of yield* boundShown(reached)) {
    if (!isOwn(view, event)) {
      waiting.push(event);
    } else if (event.kind === 'tool.result') {
      const late = foldOwn(view, event, placed(event)) === 'late';
      if (late) waiting.push(event);
    } else {
      if (view.group) closeGroup(view);
      const history = waiting.filter(({ seq }) => !inputs.has(seq));
      for (const other of history) {
        yield LINE_WORK;
        yield* pushUser(view, historyPart(other, reader), other.seq);
      }
      waiting = waiting.filter(({ seq }) => inputs.has(seq));
      foldOwn(view, event, placed(event));
      view.present = true;
    }
  }
  if (view.group) closeGroup(view);
  return waiting;
}

/** Takes a result of others, and shows it if the agent sees results or the result is for all. False: it is the agent's own. */
function takeTold(
  view: View,
  event: Event,
  { upTo, reached, kept }: { upTo: number; reached: Event[]; kept: Event[] },
): boolean {
  const { author, to, body, seq } = event;
  if ((author.kind === 'agent' && author.id === view.agent) || to.includes(view.agent)) return false;
  if (seq > upTo) kept.push(event);
  // A decision in an imported file has no effect here.
  else if (!hasAuthority(event)) return true;
  else if (view.sees || ('told' in body && body.told === 'all')) {
    view.told = true;
    reached.push(event);
  }
  return true;
}

function placed({ id, seq, tokens }: Event) {
  return { id, seqs: [seq], tokens };
}

/**
 * Renders inputs that arrived between two steps of a running turn, as messages after the results of the last step.
 * They become inputs of the turn like the others.
 */
export function* steerTurn(view: View, { upTo, inputs }: TurnSteeredBody): Steps<void> {
  closeGroup(view);
  const named = new Set(inputs);
  const reader = readerAt(view, upTo);
  const waiting = view.pending.filter(({ seq }) => named.has(seq));
  const taken = yield* boundShown(waiting);
  view.pending = view.pending.filter(({ seq }) => !named.has(seq));
  for (const event of taken) {
    yield LINE_WORK;
    yield* pushUser(view, verbatimPart(event, reader), event.seq);
  }
  if (view.turn) view.turn = { ...view.turn, inputs: new Set([...view.turn.inputs, ...inputs]) };
}

/** Layers of a turn's input, computed from its slots. `chainBefore`: chain over everything before them. */
export function* inputLayers(
  slots: readonly Slot[],
  chainBefore: string,
  secret: string,
): Steps<InputLayers> {
  const tokens = { missed: 0, trigger: 0, live: 0 };
  const texts: { missed: string[]; trigger: string[] } = { missed: [], trigger: [] };
  let live = '';
  for (const { layer, part, message, tokens: size } of slots) {
    if ((layer !== 'missed' && layer !== 'trigger') || !part) continue;
    const said = liveText(part, secret);
    live += said;
    const ofLive = liveTokens(part, said);
    tokens[layer] += size - ofLive;
    tokens.live += ofLive;
    if (texts[layer].length > 0) texts[layer].push('\n');
    texts[layer].push(withoutLive(message.content, said));
    if (message.role === 'user' && message.images) texts[layer].push(imagesText(message.images));
  }
  const hashes = { missed: NO_TEXT, trigger: NO_TEXT, live: NO_TEXT };
  for (const [name, pieces] of [
    ['missed', texts.missed],
    ['trigger', texts.trigger],
    ['live', [live]],
  ] as const) {
    const text = pieces.length === 1 ? (pieces[0] ?? '') : null;
    if (text !== null && text.length <= HASHED) {
      yield text.length;
      if (text !== '') hashes[name] = hashText(text);
    } else if (pieces.length > 0) hashes[name] = yield* hashSteps(pieces);
  }
  return { chainBefore, tokens, hashes };
}

/** Characters kept of each text that is older than those shown whole, and of each still older text. */
const PIECE = 2_048;
const SCRAP = 64;
/** Maximum characters that a turn shows for the first time, more than any window holds. */
const MOST_SHOWN = 8 * 1_048_576;
const LOOK = 16;

/**
 * Bounds the texts of events: the newest stay whole, older ones are cut to beginning and end. Rendering takes time and memory
 * per character, and a longer prompt could not be sent.
 */
function* boundShown(events: readonly Event[]): Steps<readonly Event[]> {
  const lengths: number[] = [];
  let all = 0;
  for (const event of events) {
    const length = visibleText(event)?.length ?? 0;
    lengths.push(length);
    all += length;
    yield LOOK;
  }
  if (all <= MOST_SHOWN) return events;
  let whole = MOST_SHOWN;
  let pieces = MOST_SHOWN;
  const bounded: Event[] = [];
  for (let at = events.length - 1; at >= 0; at -= 1) {
    const event = events[at] as Event;
    const length = lengths[at] ?? 0;
    yield LOOK;
    // All texts older than the first one that does not fit are cut, because gaps among whole texts are hard to understand.
    whole = length <= whole ? whole - length : 0;
    if (whole > 0) {
      bounded.push(event);
      continue;
    }
    const room = pieces > 0 ? PIECE : SCRAP;
    pieces -= Math.min(length, room);
    if (length > room) yield length;
    bounded.push(length <= room ? event : shortened(event, length, room));
  }
  return bounded.reverse();
}

function shortened(event: Event, length: number, room: number): Event {
  const tokens = Math.ceil((event.tokens * room) / length);
  return { ...event, tokens, body: shortenedBody(event, room) } as Event;
}

function shortenedBody(event: Event, room: number): Event['body'] {
  const cut = (text: string) => (text.length <= room ? text : bothEnds(text, room));
  return isAbout(event, 'prompt') ? withWordsCut(event, cut) : event.body;
}

type ShownEvent = Extract<Event, { kind: KindAbout<'prompt'> }>;

function withWordsCut(event: ShownEvent, cut: (text: string) => string): Event['body'] {
  switch (event.kind) {
    case 'message':
      return withMessageCut(event.body, cut);
    case 'step':
    case 'injection':
    case 'question.answered':
    case 'tool.result':
      return { ...event.body, content: cut(event.body.content) };
    case 'delegation.opened':
      return { ...event.body, task: cut(event.body.task), ...attachmentsCut(event.body, cut) };
    case 'delegation.ended':
      return { ...event.body, result: cut(event.body.result) };
    case 'turn.failed':
    case 'turn.aborted':
      return { ...event.body, partial: cut(event.body.partial) };
    case 'handoff':
    case 'phase.changed':
    case 'approval.decided':
    case 'command':
      return event.body;
  }
}

function withMessageCut(body: MessageBody, cut: (text: string) => string): MessageBody {
  return { ...body, content: cut(body.content), ...attachmentsCut(body, cut) };
}

function attachmentsCut({ attachments }: Pick<MessageBody, 'attachments'>, cut: (text: string) => string) {
  return attachments && { attachments: attachments.map((each) => shortenedAttachment(each, cut)) };
}

function shortenedAttachment(attachment: Attachment, cut: (text: string) => string): Attachment {
  return attachment.type === 'text' ? { ...attachment, text: cut(attachment.text) } : attachment;
}

function bothEnds(text: string, room: number): string {
  return headTail(text, room, (piece) => piece.length) || text.slice(0, room).toWellFormed();
}
