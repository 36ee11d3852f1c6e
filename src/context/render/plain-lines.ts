import type { Event } from '../../events/index.ts';
import { eventText } from '../event-text.ts';
import { escapeWords } from '../mark.ts';
import { escapeHeads, plainHead, RUNTIME } from '../plain.ts';
import { frame, type Line } from '../slot.ts';
import { labelOf, listLabel, nameTest, type Reader } from './attribution.ts';
import { lineOf, type LineRules, minute, shownText } from './line.ts';
import { addressedEarlier, headOf } from './marked-lines.ts';

/** Lines of the plain framing: a head above the words, and nothing behind them. */
export const PLAIN_LINES: LineRules = {
  verbatim,
  earlier,
  missed: (event, reader) => {
    const head = headOf(event, reader);
    if (head !== null) return ofRuntime(head, event);
    return said(event, reader, listLabel(event, reader));
  },
  handoff: (event, reader) =>
    ofRuntime(`${listLabel(event, reader)} handed this conversation over to you`, event),
};

function verbatim(event: Event, reader: Reader): Line {
  const head = headOf(event, reader);
  return head === null ? said(event, reader, labelOf(event, reader)) : ofRuntime(head, event);
}

function earlier(event: Event, reader: Reader): Line {
  const alone = verbatim(event, reader);
  return alone.by === undefined ? addressedEarlier(alone) : said(event, reader, listLabel(event, reader));
}

function said(event: Event, reader: Reader, label: string | null): Line {
  const text = escapeHeads(escapeWords(shownText(event), nameTest(reader)));
  if (label === null) return lineOf(event, frame('', text));
  // Labels have their only `>` in front of the recipients.
  const by = label.replace('>', ' to ');
  return { ...lineOf(event, frame(`${plainHead(by)}\n`, text)), by, at: minute(event.at) };
}

function ofRuntime(head: string, event: Event): Line {
  const by = head === 'reminder' ? RUNTIME : `${RUNTIME}, ${head.replace('>', ' to ')}`;
  const text = escapeHeads(escapeWords(eventText(event)));
  return { ...lineOf(event, frame(`${plainHead(by)}\n`, text)), by, at: minute(event.at) };
}
