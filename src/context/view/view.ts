import { hash } from 'node:crypto';
import type {
  AgentId,
  BaselineBody,
  CompactionBody,
  Cut,
  Event,
  EventId,
  PromptMessage,
  TurnId,
  ImageRef,
  LiveItems,
} from '../../events/index.ts';
import { type Directions, type Directives, NO_DIRECTIONS } from '../../machines/directions.ts';
import {
  kindOf,
  type KindTokens,
  NO_TOKENS,
  type UsageAnchor,
  FRAME_TOKENS,
  IMAGE_TOKENS,
} from '../budget/tokens.ts';
import { HASHED, hashSteps } from '../text/hash.ts';
import { imagesText } from '../text/event-text.ts';
import { NOTHING_STATED, type StatedItems } from './live.ts';
import { copyPeople, createPeople, type People } from '../text/people.ts';
import type { Steps } from '../text/steps.ts';

/**
 * A view: the log as one agent sees it. It is a fold that grows at its end; only logged compactions and prunes change
 * earlier parts.
 *
 * Owns the rendered messages and what is needed to render the next ones. Does not own budgets, layers or baselines.
 *   V1  Between two logged compactions or prunes messages never change: request n+1 begins with all bytes of request
 *       n, except for a note at its end. A note is for one step. It is in no slot and in no later request.
 *   V2  Every visible event is in exactly one place: rendered, `pending`, or covered by a summary.
 *   V3  Only events of the running turn are rendered as they arrive. All others (words of others, and the agent's own words
 *       outside a turn, as in imported history) are `pending` until a turn begins whose `upTo` reaches them.
 *   V4  So the rendered messages depend only on the log and on the `upTo` of its turns, not on when the log was read. A
 *       cold rebuild gives the same bytes as a warm extension, whatever was appended while a turn was being started.
 */
export interface View {
  readonly agent: AgentId;
  readonly secret: string;
  /** Last seq folded. */
  upTo: number;
  slots: Slot[];
  /** Tokens of all `slots`. */
  tokens: number;
  /** Tokens of all `slots`, by kind of content. */
  kinds: KindTokens;
  /** Bytes of all `slots` in UTF-8. */
  bytes: number;
  /** Chained hash over the messages. */
  chain: string;
  pending: Event[];
  people: People;
  group: CallGroup | null;
  /** Every rendered call id, with the last number that was appended to it to keep ids unique. */
  calls: Map<string, number>;
  /** Ids of calls with a synthetic result. A later result of such a call is shown as new input. */
  lost: Set<string>;
  turn: OpenTurn | null;
  /** A note to only the next step of the running turn. */
  note: Note | null;
  stated: StatedItems;
  directions: Directions;
  directives: Directives;
  /** Role of messages with other agents' words that the last turn did not answer. */
  peers: 'user' | 'system';
  /** How the prompt of the last turn showed who says what. */
  framing: 'marked' | 'plain';
  /** Set if the last turn saw results of others. Absent: it saw only their words. */
  sees?: 'results' | undefined;
  /** Set if `slots` contain results of others. */
  told?: true;
  /** The baseline in force: the last one logged by this agent. */
  baseline: { id: EventId; body: BaselineBody } | null;
  /** Whether the agent has spoken or had a turn. */
  present: boolean;
  /** The shared compactions of the conversation, by id, oldest first. The bodies are the objects of the log. */
  compactions: Map<EventId, CompactionBody>;
  /** Events up to here are covered by the summary at the start of the view. */
  floor: number;
  /** The compactions and prunes in force, oldest first. */
  cuts: Cut[];
  /** The last slot changed by a prune. */
  frontier: number | null;
  /** Usage that the provider reported for the last call since the last compaction, with Troupe's count. */
  anchor: UsageAnchor | null;
  /** End of the agent's last turn, ms since the epoch, from which it follows whether its cache has expired. */
  spokeAt: number | null;
  /** The agent's last finished turn. */
  lastTurn: TurnId | null;
  /** Seq of the last command to compact that no turn has carried out yet. */
  compactAsked: number | null;
}

/** A step that waits for results. `written`: the call id as the model wrote it. `id`: the call id in the prompt. */
interface CallGroup {
  step: Slot['step'];
  waiting: { written: string; id: string; name: string }[];
}

/** A message that is sent once, after all others. */
export interface Note {
  message: PromptMessage;
  tokens: number;
}

/** The agent's running turn. */
export interface OpenTurn {
  id: TurnId;
  /** Messages of drafts that are not in the log yet, by event id. Their seqs are filled in later. */
  ahead: Map<EventId, { seqs: number[] }>;
  /** Index in `slots` where this turn's input begins. */
  begins: number;
  /** Seqs of the inputs that the turn answers. No compaction covers them while it runs. */
  inputs: ReadonlySet<number>;
  /** Whether a person asked to compact the prompt before this turn. */
  isToCompact: boolean;
  input: InputLayers;
}

/** Tokens and hashes of the layers of a turn's input, and the chain before them. */
export interface InputLayers {
  chainBefore: string;
  tokens: { missed: number; trigger: number; live: number };
  hashes: { missed: string; trigger: string; live: string };
}

export function createView(agent: AgentId, secret: string): View {
  return {
    agent,
    secret,
    upTo: 0,
    slots: [],
    tokens: 0,
    kinds: { ...NO_TOKENS },
    bytes: 0,
    chain: '',
    pending: [],
    people: createPeople(),
    group: null,
    calls: new Map(),
    lost: new Set(),
    turn: null,
    note: null,
    stated: NOTHING_STATED,
    directions: NO_DIRECTIONS,
    directives: new Map(),
    peers: 'user',
    framing: 'marked',
    baseline: null,
    present: false,
    compactions: new Map(),
    floor: 0,
    cuts: [],
    frontier: null,
    anchor: null,
    spokeAt: null,
    lastTurn: null,
    compactAsked: null,
  };
}

/** A copy on which changes can be tried. The original stays unchanged, with its messages that wait for their seq. */
export function forkView(view: View): View {
  const seqs = new Map([...(view.turn?.ahead.values() ?? [])].map((m) => [m.seqs, m.seqs.slice()]));
  const ahead = new Map(
    [...(view.turn?.ahead ?? [])].map(([id, m]) => [id, { seqs: seqs.get(m.seqs) ?? [] }]),
  );
  return {
    ...view,
    slots: view.slots.map((slot) => {
      const message = withSeqs(slot.message, seqs);
      return message === slot.message ? slot : { ...slot, message };
    }),
    pending: view.pending.slice(),
    people: copyPeople(view.people),
    group: view.group && { ...view.group, waiting: view.group.waiting.slice() },
    kinds: { ...view.kinds },
    calls: new Map(view.calls),
    lost: new Set(view.lost),
    turn: view.turn && { ...view.turn, ahead },
    note: view.note && { ...view.note, message: withSeqs(view.note.message, seqs) },
    directives: new Map(view.directives),
    compactions: new Map(view.compactions),
    cuts: view.cuts.slice(),
  };
}

function withSeqs(message: PromptMessage, seqs: ReadonlyMap<number[], number[]>): PromptMessage {
  const copy = seqs.get(message.seqs);
  return copy ? { ...message, seqs: copy } : message;
}

/**
 * First message of a conversation that begins with the agent's own words. Providers refuse requests that begin with the model's.
 */
const OPENER: PromptMessage = { role: 'user', content: '[the conversation begins]', seqs: [] };
const OPENER_TOKENS = 6 + FRAME_TOKENS;

/** Appends a message. The chain covers what is sent, but not the seqs, which arrive later for own words. */
export function pushSlot(view: View, slot: Slot): void {
  addSlot(view, slot);
  view.chain = chainMessage(view.chain, slot.message);
}

/** `pushSlot` in steps, for a message of any length. The view is inconsistent until the last step is done. */
export function* pushSlotSteps(view: View, slot: Slot): Steps<void> {
  addSlot(view, slot);
  view.chain = yield* chainSteps(view.chain, slot.message);
}

function addSlot(view: View, slot: Slot): void {
  if (view.slots.length === 0 && slot.message.role === 'assistant') {
    pushSlot(view, { ...slot, message: OPENER, tokens: OPENER_TOKENS, event: null, at: 0, step: null });
  }
  view.slots.push(slot);
  view.tokens += slot.tokens;
  view.kinds[kindOf(slot.message)] += slot.tokens;
  view.bytes += bytesOf(slot.message);
}

/** Cache of `bytesOf`, because messages never change and every copy of a view sums their sizes again. */
const SIZES = new WeakMap<PromptMessage, number>();

/** Approximate size of a message in a request: its text and calls in UTF-8. */
export function bytesOf(message: PromptMessage): number {
  const known = SIZES.get(message);
  if (known !== undefined) return known;
  let size = Buffer.byteLength(message.content);
  if (message.role === 'assistant')
    for (const { args } of message.calls ?? []) size += Buffer.byteLength(args);
  SIZES.set(message, size);
  return size;
}

export function chainMessage(chain: string, message: PromptMessage): string {
  const { role, content } = message;
  return hash('sha256', `${chain}\n${role}\n${content.length}\n${content}${restOf(message)}`, 'hex').slice(
    0,
    32,
  );
}

/** `chainMessage` in steps, for a message of any length. */
export function* chainSteps(chain: string, message: PromptMessage): Steps<string> {
  const { role, content } = message;
  if (content.length <= HASHED) {
    yield content.length;
    return chainMessage(chain, message);
  }
  return yield* hashSteps([`${chain}\n${role}\n${content.length}\n`, content, restOf(message)]);
}

/** The parts of a message that are sent besides its text; '' if there are none. */
function restOf(message: PromptMessage): string {
  switch (message.role) {
    case 'system':
      return '';
    case 'user':
      return message.images ? imagesText(message.images) : '';
    case 'assistant':
      if (!message.calls && !message.reasoning) return '[null,null]';
      return JSON.stringify([message.calls ?? null, message.reasoning ?? null]);
    case 'tool':
      return JSON.stringify([message.call, message.name, message.failed]);
  }
}

export function isOwn(view: View, event: { author: Event['author']; to: readonly string[] }): boolean {
  const mine = event.author.kind === 'agent' && event.author.id === view.agent;
  return mine && !event.to.includes(view.agent);
}

/** One event as a line of a user message. Its text may be shortened, its frame never. */
export interface Line extends Framed {
  event: EventId;
  seq: number;
  /** Tokens of only the text. */
  tokens: number;
  /** The images of the event; never empty. */
  images?: readonly ImageRef[];
  /** Set for a result of others, which can be pruned. `of`: its tool or task. `id`: id of the whole output. */
  output?: { of: string; id: string };
  /** The speaker named before the text, and the minute. Absent if the line names nobody. */
  by?: string;
  at?: string;
}

/**
 * The parts of a user message, kept so that a shorter version can be rendered: either one plain line, or a block of
 * handoffs and missed lines. `live` comes at the end.
 */
export interface Part {
  plain: Line | null;
  handoffs: readonly Line[];
  missed: readonly Line[];
  live: { items: LiveItems; turn: TurnId } | null;
  /** The role of the message, if it is not `user`. */
  as?: 'system';
  /** The last minute shown before this message; null for none. */
  told: string | null;
  /** The framing with which it is rendered. Absent: with marks. */
  framing?: 'plain';
}

export type SlotLayer = 'summary' | 'history' | 'missed' | 'trigger';

/** A rendered message, with what a compaction needs to know about it. */
export interface Slot {
  message: PromptMessage;
  tokens: number;
  layer: SlotLayer;
  /** Set for user messages. Null for own words, results and a summary. */
  part: Part | null;
  /** Set for own words and results. */
  event: EventId | null;
  /** Set for user messages, which may show no event: a seq by which a compaction decides whether it covers the message. */
  at: number | null;
  /** Set for own words: the turn and its step. */
  step: { turn: TurnId; index: number } | null;
  /** Set for results: id of the artifact with the whole output, if there is one. */
  artifact: string | null;
  /** Set if it is shown as a placeholder. */
  pruned?: true;
}

/** First seq of a message in the log. Messages that are not in the log yet come after all others. */
export function firstSeq({ message, at }: Slot): number {
  return message.seqs[0] ?? at ?? Infinity;
}

export function lastSeq({ message, at }: Slot): number {
  return message.seqs.at(-1) ?? at ?? Infinity;
}

export function linesOf(part: Part): readonly Line[] {
  return part.plain ? [part.plain] : [...part.handoffs, ...part.missed];
}

/** The images of a part, in the order of their mention. */
export function imagesIn(part: Part): readonly ImageRef[] {
  return part.plain ? (part.plain.images ?? NONE) : linesOf(part).flatMap(({ images = NONE }) => images);
}

const NONE: readonly ImageRef[] = [];

export function lineTokens({ tokens, images = [] }: Line): number {
  return tokens + images.length * IMAGE_TOKENS;
}

/** An author's text within Troupe's frame: `content.slice(from, to)` is the text. */
export interface Framed {
  content: string;
  from: number;
  to: number;
}

export function frame(before: string, text: string, after = ''): Framed {
  return { content: before + text + after, from: before.length, to: before.length + text.length };
}
