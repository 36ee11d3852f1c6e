import type { Event, EventOf } from '../../events/index.ts';
import { eventText } from '../event-text.ts';
import { escapeMarks, fenceEnds } from '../fence.ts';
import { fenceKey } from '../hash.ts';
import { frame, type Framed, type Line } from '../slot.ts';
import { labelOf, listLabel, nameTest, type Reader } from './attribution.ts';
import { lateWords, lineOf, type LineRules, minute, phaseWords, shownText } from './line.ts';

/** Lines of renderings 1 and 2: every event in a fence of its own. Never change them: turns of old logs use them. */
export const FENCED_LINES: LineRules = {
  verbatim,
  earlier: (event, reader) => verbatim(event, reader, EARLIER),
  missed: missedLine,
  handoff: handoffLine,
};

export const EARLIER = '(addressed to you earlier)\n';

function verbatim(event: Event, reader: Reader, head = ''): Line {
  if (event.kind === 'phase.changed') return phaseLine(event, reader, head);
  if (event.kind === 'command') return retryLine(event, reader);
  return event.kind === 'tool.result'
    ? lateResult(event, reader, head)
    : lineOf(event, renderOther(event, shownText(event, reader), reader, head));
}

/** Another author's event as the text of a user message. Only the fence marks the end of an agent's words. */
function renderOther(event: Event, text: string, reader: Reader, head = ''): Framed {
  const label = labelOf(event, reader);
  if (event.author.kind !== 'user') return fenceText(event, text, reader, `${head}[${label}]\n`);
  const body = escapeMarks(text, nameTest(reader));
  return frame(label === null ? head : `${head}[${label}] `, body);
}

function fenceText(event: Event, text: string, { view }: Reader, head = ''): Framed {
  const [open, close] = fenceEnds('msg', fenceKey(view.secret, `${event.seq}`));
  return frame(head + open, escapeMarks(text), close);
}

function missedLine(event: Event, reader: Reader): Line {
  if (event.kind === 'tool.result') return lateResult(event, reader);
  if (event.kind === 'phase.changed') return phaseLine(event, reader, `${minute(event.at)} `);
  if (event.kind === 'command') return retryLine(event, reader);
  const head = `${minute(event.at)} [${listLabel(event, reader)}]\n`;
  return lineOf(event, fenceText(event, shownText(event, reader), reader, head));
}

function handoffLine(event: Event, reader: Reader): Line {
  const head = `[${listLabel(event, reader)}] handed this conversation over to you:\n`;
  const [open, close] = fenceEnds('handoff', fenceKey(reader.view.secret, `${event.seq}`));
  return lineOf(event, frame(head + open, escapeMarks(eventText(event)), close));
}

/** Always fenced: the summary holds words of others. */
function phaseLine(event: EventOf<'phase.changed'>, reader: Reader, head: string): Line {
  const text = `${head}[${listLabel(event, reader)}] ${phaseWords(event)}. What came before it:\n`;
  const [open, close] = fenceEnds('handoff', fenceKey(reader.view.secret, `${event.seq}`));
  return lineOf(event, frame(text + open, escapeMarks(eventText(event)), close));
}

/** Marked as a reminder of the runtime, because no participant said it. */
function retryLine(event: EventOf<'command'>, { view }: Reader): Line {
  const [open, close] = fenceEnds('reminder', fenceKey(view.secret, `retry ${event.seq}`));
  return lineOf(event, frame(open, escapeMarks(eventText(event)), close));
}

function lateResult(event: EventOf<'tool.result'>, reader: Reader, head = ''): Line {
  const text = shownText(event, reader);
  return lineOf(event, fenceText(event, text, reader, `${head}[${lateWords(event)}]\n`));
}
