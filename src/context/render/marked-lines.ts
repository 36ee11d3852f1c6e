import type { Event } from '../../events/index.ts';
import { eventText } from '../event-text.ts';
import { markKey } from '../hash.ts';
import { escapeWords, markEnds } from '../mark.ts';
import { frame, type Framed, type Line } from '../slot.ts';
import { labelOf, listLabel, nameTest, type Reader } from './attribution.ts';
import { lateWords, lineOf, type LineRules, minute, phaseWords, shownText } from './line.ts';

/** Lines from rendering 3 on: a mark around what stands alone, and one around a whole block. */
export const MARKED_LINES: LineRules = {
  verbatim: (event, reader) =>
    ofRuntime(event, reader) ?? said(event, reader, labelOf(event, reader), { isAlone: true }),
  earlier: earlierLine,
  missed: (event, reader) =>
    ofRuntime(event, reader) ?? said(event, reader, listLabel(event, reader), { isAlone: false }),
  handoff: (event, reader) => {
    const head = `${listLabel(event, reader)} handed this conversation over to you`;
    return lineOf(event, marked(head, event, eventText(event), reader));
  },
};

/** Named with its recipients, so that the reader sees itself among them. The only person stays without a name. */
function earlierLine(event: Event, reader: Reader): Line {
  const alone = MARKED_LINES.verbatim(event, reader);
  if (alone.by === undefined) return { ...alone, ...headed(EARLIER, alone) };
  return said(event, reader, listLabel(event, reader), { isAlone: true });
}

const EARLIER = '(addressed to you earlier)\n';

function headed(head: string, { content, from, to }: Framed): Framed {
  return { content: head + content, from: from + head.length, to: to + head.length };
}

/** Events whose line tells what they are. Null for the others. */
function ofRuntime(event: Event, reader: Reader): Line | null {
  if (event.kind === 'phase.changed') {
    const head = `${listLabel(event, reader)} ${phaseWords(event)}; what came before it`;
    return lineOf(event, marked(head, event, eventText(event), reader));
  }
  if (event.kind === 'command') return lineOf(event, marked('reminder', event, eventText(event), reader));
  if (event.kind !== 'tool.result') return null;
  return lineOf(event, marked(lateWords(event), event, shownText(event, reader), reader));
}

function said(event: Event, reader: Reader, label: string | null, { isAlone }: { isAlone: boolean }): Line {
  const text = shownText(event, reader);
  const at = minute(event.at);
  if (label === null) return lineOf(event, frame('', escapeWords(text, nameTest(reader))));
  // In a block, the mark is around the block.
  const isMarked = isAlone && event.author.kind !== 'user';
  const framed = isMarked
    ? marked(label, event, text, reader)
    : frame(`[${label}] `, escapeWords(text, nameTest(reader)));
  return { ...lineOf(event, framed), by: label, at };
}

function marked(head: string, { seq }: Event, text: string, { view }: Reader): Framed {
  const [open, close] = markEnds(head, markKey(view.secret, `${seq}`));
  return frame(open, escapeWords(text), close);
}
