import type { Event } from '../events/index.ts';
import { fenceText, listHeader, renderOther, type Reader } from './attribution.ts';
import { estimateFraming, FRAME_TOKENS } from './estimate-tokens.ts';
import { eventText, visibleText, visibleTokens } from './event-text.ts';
import { escapeMarks, fence } from './fence.ts';
import { fenceKey } from './hash.ts';
import { pushMessage, type View } from './view.ts';

/** One user message to be: its text, and the events that are in it. */
export interface Part {
  content: string;
  events: readonly Event[];
}

const AWAY = 'While you were away:';

export function pushUser(view: View, { content, events }: Part): void {
  const words = events.reduce((sum, event) => sum + visibleTokens(event), 0);
  const length = events.reduce((sum, event) => sum + shownText(event).length, 0);
  const tokens = words + estimateFraming(content.length - length) + FRAME_TOKENS;
  pushMessage(view, { role: 'user', content, seqs: events.map(({ seq }) => seq) }, tokens);
}

function shownText(event: Event): string {
  return event.kind === 'tool.result' ? event.body.content : (visibleText(event) ?? '');
}

/** One message of its own. */
export function verbatim(event: Event, reader: Reader): Part {
  const content =
    event.kind === 'tool.result'
      ? lateResult(event, event.body.name, reader)
      : renderOther(event, shownText(event), reader);
  return { content, events: [event] };
}

export function earlierTrigger(event: Event, reader: Reader): Part {
  return { content: `(addressed to you earlier)\n${verbatim(event, reader).content}`, events: [event] };
}

function lateResult(event: Event, name: string, reader: Reader): string {
  const tool = name.replace(/[^A-Za-z0-9_.:-]/g, '_').slice(0, 64);
  return `[late result of ${tool}]\n${fenceText(event, shownText(event), reader)}`;
}

/** What was said since the agent last spoke, in one block. */
export function awayBlock(events: readonly Event[], reader: Reader): Part {
  const lines = events.map((event) =>
    event.kind === 'tool.result'
      ? lateResult(event, event.body.name, reader)
      : `${minute(event.at)} ${listHeader(event, reader)}\n${fenceText(event, shownText(event), reader)}`,
  );
  const key = fenceKey(reader.view.secret, `missed ${events[0]?.seq}`);
  return { content: fence('missed', key, [AWAY, ...lines].join('\n')), events };
}

/** The summaries of whoever hands over, and behind them what else was missed. */
export function handoffBlock(handoffs: readonly Event[], missed: readonly Event[], reader: Reader): Part {
  const summaries = handoffs.map((event) => {
    const body = fence(
      'handoff',
      fenceKey(reader.view.secret, `${event.seq}`),
      escapeMarks(eventText(event)),
    );
    return `${listHeader(event, reader)} handed this conversation over to you:\n${body}`;
  });
  const away = missed.length === 0 ? [] : [awayBlock(missed, reader).content];
  return { content: [...summaries, ...away].join('\n'), events: [...handoffs, ...missed] };
}

/** The last time that a Date can hold; imported events may name a later one. */
const LAST_TIME = 8.64e15;

/** UTC to the minute, as 2026-11-21T22:05Z. */
export function minute(at: number): string {
  return new Date(Math.min(at, LAST_TIME)).toISOString().replace(/:\d\d\.\d+Z$/, 'Z');
}
