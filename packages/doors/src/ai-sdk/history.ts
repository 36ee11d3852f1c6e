import {
  type ChatChange,
  type ConversationId,
  type Event,
  type Troupe,
  TurnId,
  chatChanges,
  eventJson,
} from '../troupe.ts';
import { createExchangeFold, isOpening } from './exchanges.ts';
import { saidIn, type UiMessage, UiMessageBuilder, type UiPart } from './ui-message.ts';
import { UiWriter } from './ui-writer.ts';
import { type EventFile, filesIn } from '../http.ts';

/** Number of events that are read at a time. */
const BLOCK = 200;
/** A page ends with the block that reaches this many events or characters. */
const ENOUGH = { events: 400, chars: 1_024 * 1_024 };
/** At this size a page ends even within an exchange. */
const MOST = { events: 5_000, chars: 4 * 1_024 * 1_024 };

interface HistoryPage {
  /** Oldest first. */
  messages: UiMessage[];
  /** `before` for the page of earlier messages. Null if there are none. */
  next: number | null;
}

interface HistoryOptions {
  conversation: ConversationId;
  /** Only events before this seq. */
  before?: number | undefined;
  nameOf: (agent: string) => string;
  filesOf: (event: Event) => Promise<UiPart[]>;
}

/** The newest messages before a seq: whole exchanges, unless they are very long. Throws `conversation_unknown`. */
export async function readHistory(troupe: Troupe, options: HistoryOptions): Promise<HistoryPage> {
  const { conversation, before = Infinity } = options;
  const { head } = await troupe.events(conversation, { after: 0, limit: 1 });
  let first = Math.min(head + 1, before);
  let events: Event[] = [];
  let chars = 0;
  while (first > 1) {
    const after = Math.max(0, first - 1 - BLOCK);
    const block = await readBlock(troupe, conversation, after, first - 1);
    events = [...block, ...events];
    chars += block.reduce((sum, event) => sum + eventJson(event).length, 0);
    first = after + 1;
    const isEnough = events.length >= ENOUGH.events || chars >= ENOUGH.chars;
    if (isEnough && events.some(isOpening)) break;
    if (events.length >= MOST.events || chars >= MOST.chars) break;
  }
  const opening = first > 1 ? events.findIndex(isOpening) : -1;
  const whole = opening > 0 ? events.slice(opening) : events;
  const start = whole[0]?.seq ?? 1;
  return { messages: await messagesOf(whole, options), next: start > 1 ? start : null };
}

async function readBlock(
  troupe: Troupe,
  conversation: ConversationId,
  after: number,
  last: number,
): Promise<Event[]> {
  const found: Event[] = [];
  for (let at = after; at < last;) {
    const { events } = await troupe.events(conversation, { after: at, limit: last - at });
    if (events.length === 0) break;
    found.push(...events);
    at = events.at(-1)?.seq ?? last;
  }
  return found;
}

async function messagesOf(
  events: readonly Event[],
  { conversation, nameOf, filesOf }: HistoryOptions,
): Promise<UiMessage[]> {
  const fold = createExchangeFold();
  const first = events[0]?.seq ?? 1;
  const changesOf = chatChanges();
  const withTurn = turnsOfImports();
  const messages: UiMessage[] = [];
  const answers = new Map<number, (change: ChatChange) => void>();

  function answerOf(root: number): (change: ChatChange) => void {
    const known = answers.get(root);
    if (known) return known;
    const writer = new UiWriter({ conversation, nameOf });
    const builder = new UiMessageBuilder(conversation, root);
    messages.push(builder.message);
    const add = (change: ChatChange) => {
      for (const chunk of writer.write(change)) builder.take(chunk);
    };
    answers.set(root, add);
    return add;
  }

  for (const event of events) {
    const root = fold.note(event).at(-1) ?? (fold.latest || first);
    const said = saidIn(event, await filesOf(event));
    if (said) messages.push(said);
    if (isOpening(event)) continue;
    const add = answerOf(root);
    for (const change of changesOf({ type: 'event', event: withTurn(event) })) add(change);
  }
  return messages.filter(({ parts }) => parts.length > 0);
}

/** Imported events have no turn. Gives them one that ends with each message. */
function turnsOfImports(): (event: Event) => Event {
  let number = 0;
  return (event) => {
    const { turn, author, kind, conversation } = event;
    if (turn !== undefined || author.kind !== 'agent') return event;
    const made = TurnId.parse(`${conversation.slice(0, 64)}:${author.id}:import-${number}`);
    if (kind === 'message') number += 1;
    return { ...event, turn: made };
  };
}

/** The attachments of messages as parts of a chat, with their contents as data URLs. */
export function filePartsIn(troupe: Troupe): (event: Event) => Promise<UiPart[]> {
  const files = filesIn(troupe);
  return async (event) => (await files(event)).map(partOf);
}

function partOf({ mediaType, name, bytes, base64 }: EventFile): UiPart {
  if (base64 === null) return { type: 'data-file', data: { mediaType, name, bytes } };
  const url = `data:${mediaType};base64,${base64}`;
  return { type: 'file', mediaType, ...(name !== undefined && { filename: name }), url };
}
