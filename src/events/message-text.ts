import type { EventDraft, EventOf } from './event.ts';
import type { Attachment, HandoffSummary, MessageBody } from './message.ts';

/** All words of a message: its text, then its attachments, a line each. A short text attachment is shown whole. */
export function messageText({ content, attachments }: Omit<MessageBody, 'data'>): string {
  if (!attachments) return content;
  const lines = attachments.map(attachmentText);
  return content.trim() === '' ? lines.join('\n') : [content, ...lines].join('\n');
}

/** Text of a task: for its assignee with all attachments, for everybody else with none. */
export function taskText(
  event: EventOf<'delegation.opened'> | Extract<EventDraft, { kind: 'delegation.opened' }>,
): string {
  const { task, attachments, thread } = event.body;
  const isAtHome = 'conversation' in event && event.conversation !== thread;
  return attachments && !isAtHome ? messageText({ content: task, attachments }) : task;
}

/** The name by which a prompt shows an attachment: its own, else its media type. */
export function attachmentName({ name, mediaType }: Pick<Attachment, 'name' | 'mediaType'>): string {
  return oneName(name ?? mediaType);
}

function attachmentText(attachment: Attachment): string {
  const { type, mediaType, name } = attachment;
  if (type === 'text') return `[text: ${oneName(name ?? mediaType)}]\n${attachment.text}`;
  const kilobytes = Math.ceil(attachment.bytes / 1_000);
  return `[${type}: ${[...(name === undefined ? [] : [oneName(name)]), mediaType, `${kilobytes} kB`].join(', ')}]`;
}

const MAX_NAME_CHARS = 100;

/** A name on one line, without brackets, so that it cannot end its line early. */
function oneName(name: string): string {
  const line = name
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replaceAll('[', '(')
    .replaceAll(']', ')');
  return line.length <= MAX_NAME_CHARS ? line : `${line.slice(0, MAX_NAME_CHARS - 1).toWellFormed()}…`;
}

/** The non-empty fields of a handoff, one a line. */
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
