import { type Event, messageText } from '../../events/index.ts';

/** Words of events, one paragraph each, with authors and seqs; the newest that fit in `mostChars`. */
export function transcriptOf(conversation: string, events: readonly Event[], mostChars: number): string {
  const kept: string[] = [];
  let left = mostChars;
  let dropped = 0;
  for (const event of events.toReversed()) {
    const text = wordsOf(event);
    if (text === null) continue;
    const { kind, name } = event.author;
    const paragraph = `**${kind === 'agent' ? '@' : ''}${oneLine(name)}** (${event.seq}): ${text}`;
    if (paragraph.length > left) {
      dropped = event.seq;
      break;
    }
    left -= paragraph.length;
    kept.unshift(paragraph);
  }
  const more = dropped > 0 ? [`(Up to event ${dropped} it is not shown.)`] : [];
  return [`# ${conversation}`, ...more, ...kept].join('\n\n');
}

/** Null: nothing that people read. */
function wordsOf(event: Event): string | null {
  if (event.kind === 'message' || event.kind === 'notice') return messageText(event.body);
  if (event.kind === 'step') return event.body.content || null;
  if (event.kind === 'question') return `asks: ${event.body.text}`;
  if (event.kind !== 'approval.requested') return null;
  return `waits for approval to call ${event.body.tool} ${event.body.args}`;
}

function oneLine(name: string): string {
  return name.replace(/[\p{Cc}\p{Zl}\p{Zp}*]+/gu, ' ');
}
