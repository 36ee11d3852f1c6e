import { MAX_SUMMARY } from './model.ts';
import type { Attachment, HandoffSummary, MessageBody } from '../events/index.ts';

/** How much of a text is looked at for a line of it: what is only blanks up to there is not worth more. */
const LOOK_AHEAD = 4;

/** The beginning of a text as one line. */
export function oneLine(text: string, length: number = MAX_SUMMARY): string {
  const isLong = text.length > length * LOOK_AHEAD;
  const head = isLong ? text.slice(0, length * LOOK_AHEAD) : text;
  const line = head.replace(/\s+/g, ' ').trim();
  if (line.length <= length) return isLong ? `${line.slice(0, length - 1).toWellFormed()}…` : line;
  return `${line.slice(0, length - 1).toWellFormed()}…`;
}

const MAX_NAME_CHARS = 100;

/** All the words of a message: what was said, then what came with it, a line each; of a short text all of it. */
export function messageText({ content, attachments }: MessageBody): string {
  if (!attachments) return content;
  const lines = attachments.map(attachmentText);
  return content.trim() === '' ? lines.join('\n') : [content, ...lines].join('\n');
}

function attachmentText(attachment: Attachment): string {
  const { type, mediaType, name } = attachment;
  if (type === 'text') return `[text: ${oneName(name ?? mediaType)}]\n${attachment.text}`;
  const kilobytes = Math.ceil(attachment.bytes / 1_000);
  return `[${type}: ${[...(name === undefined ? [] : [oneName(name)]), mediaType, `${kilobytes} kB`].join(', ')}]`;
}

/** A name in one line and without brackets, so that it ends where its line does. */
function oneName(name: string): string {
  const line = name
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replaceAll('[', '(')
    .replaceAll(']', ')');
  return line.length <= MAX_NAME_CHARS ? line : `${line.slice(0, MAX_NAME_CHARS - 1).toWellFormed()}…`;
}

/** A handoff, part by part. */
export function handoffText(summary: HandoffSummary): string {
  const lines = [
    ['Goal', summary.goal],
    ['Done', summary.done],
    ['State', summary.state],
    ['Next', summary.next],
    ['Open questions', summary.openQuestions.join('; ')],
    ['Artifacts', summary.artifacts.join(', ')],
    ['Why you', summary.why],
  ];
  return lines
    .filter(([, value]) => value)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
}

/** 1, 2, 3, 7 as `1–3, 7`. */
export function ranges(seqs: readonly number[]): string {
  const parts: { from: number; to: number }[] = [];
  for (const seq of seqs) {
    const last = parts.at(-1);
    if (last && seq === last.to + 1) last.to = seq;
    else parts.push({ from: seq, to: seq });
  }
  return parts.map(({ from, to }) => (from === to ? `${from}` : `${from}–${to}`)).join(', ');
}
