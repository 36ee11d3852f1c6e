import { headTail } from '../extract/cut-text.ts';
import { visibleText } from '../event-text.ts';
import type { Steps } from '../steps.ts';
import {
  type Attachment,
  type Event,
  isAbout,
  type KindAbout,
  type MessageBody,
} from '../../events/index.ts';

/** Characters kept of each text older than the whole ones, and of each still older text. */
const PIECE = 2_048;
const SCRAP = 64;
/** Characters newly shown to a turn: more than any window takes. */
const MOST_SHOWN = 8 * 1_048_576;
/** Cost of looking at one event, in characters. */
const LOOK = 16;

/**
 * The events as a prompt may show them: the newest whole, older ones as beginnings and ends. Rendering costs time and
 * memory by the character, and a longer prompt could not be sent.
 */
export function* boundShown(events: readonly Event[]): Steps<readonly Event[]> {
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
    // The first text that does not fit ends the whole ones: a later gap would be harder to understand.
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
      return { ...event.body, task: cut(event.body.task) };
    case 'delegation.completed':
    case 'delegation.aborted':
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
  const { attachments } = body;
  const rest = attachments && { attachments: attachments.map((each) => shortenedAttachment(each, cut)) };
  return { ...body, content: cut(body.content), ...rest };
}

function shortenedAttachment(attachment: Attachment, cut: (text: string) => string): Attachment {
  return attachment.type === 'text' ? { ...attachment, text: cut(attachment.text) } : attachment;
}

function bothEnds(text: string, room: number): string {
  return headTail(text, room, (piece) => piece.length) || text.slice(0, room).toWellFormed();
}
