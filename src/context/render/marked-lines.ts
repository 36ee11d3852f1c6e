import type { Event } from '../../events/index.ts';
import { eventText } from '../event-text.ts';
import { markKey } from '../hash.ts';
import { escapeWords, markEnds, MAYBE_WORDS } from '../mark.ts';
import { frame, type Framed, type Line } from '../slot.ts';
import { labelOf, listLabel, nameTest, type Reader } from './attribution.ts';
import { lateWords, lineOf, type LineRules, minute, phaseWords, shownText } from './line.ts';

/** Lines with marks: one around what stands alone, and one around a whole block. */
export const MARKED_LINES: LineRules = {
  verbatim,
  earlier,
  missed: missedLine,
  handoff: (event, reader) => {
    const head = `${listLabel(event, reader)} handed this conversation over to you`;
    return lineOf(event, marked(head, event, eventText(event), reader));
  },
};

function verbatim(event: Event, reader: Reader): Line {
  const head = event.kind === 'message' ? null : headOf(event, reader);
  if (head !== null) return lineOf(event, marked(head, event, eventText(event), reader));
  return said(event, reader, labelOf(event, reader));
}

/** Named with its recipients, so that the reader sees itself among them. The only person stays without a name. */
function earlier(event: Event, reader: Reader): Line {
  const alone = verbatim(event, reader);
  if (alone.by === undefined) return addressedEarlier(alone);
  return said(event, reader, listLabel(event, reader));
}

export const EARLIER = '(addressed to you earlier)\n';

/** For a line that names nobody. */
export function addressedEarlier(line: Line): Line {
  const { content, from, to } = line;
  return { ...line, content: EARLIER + content, from: from + EARLIER.length, to: to + EARLIER.length };
}

/** What an event is, where that has to be told. Null for events that are words of somebody. */
export function headOf(event: Event, reader: Reader): string | null {
  if (event.kind === 'phase.changed')
    return `${listLabel(event, reader)} ${phaseWords(event)}; what came before it`;
  if (event.kind === 'command') return 'reminder';
  return event.kind === 'tool.result' ? lateWords(event) : null;
}

function said(event: Event, reader: Reader, label: string | null): Line {
  const text = shownText(event);
  const isPlain = !MAYBE_WORDS.test(text);
  if (label === null) {
    const words = isPlain ? text.toWellFormed() : escapeWords(text, nameTest(reader));
    return lineOf(event, { content: words, from: 0, to: words.length });
  }
  const framed =
    event.author.kind === 'user'
      ? frame(`[${label}] `, isPlain ? text.toWellFormed() : escapeWords(text, nameTest(reader)))
      : marked(label, event, text, reader);
  return { ...lineOf(event, framed), by: label, at: minute(event.at) };
}

/** The mark is around the block, and `blockLines` writes the beginning of each line. */
function missedLine(event: Event, reader: Reader): Line {
  const head = headOf(event, reader);
  const by = head ?? listLabel(event, reader);
  const text =
    head === null ? escapeWords(shownText(event), nameTest(reader)) : escapeWords(eventText(event));
  return { ...lineOf(event, frame(`[${by}] `, text)), by, at: minute(event.at) };
}

function marked(head: string, { seq }: Event, text: string, { view }: Reader): Framed {
  const [open, close] = markEnds(head, markKey(view.secret, `${seq}`));
  return frame(open, escapeWords(text), close);
}
