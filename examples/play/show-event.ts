import type { Event } from '../../src/index.ts';

const MOST_TEXT = 160;

/** An event as one line; null for bookkeeping. */
export function showEvent(event: Event): string | null {
  const { author, to, conversation } = event;
  const who = author.kind === 'agent' ? `@${author.id}` : author.name;
  const whom = to.length > 0 ? ` → ${to.map((agent) => `@${agent}`).join(' ')}` : '';
  if (event.kind === 'message')
    return event.body.content.trim() === '' ? null : `${who}${whom}: ${clip(event.body.content)}`;
  if (event.kind === 'handoff')
    return `${who} hands over to${whom.slice(2)}: ${clip(event.body.summary.goal)}`;
  if (event.kind === 'delegation.opened') {
    // The thread shows it too.
    if (event.body.thread === conversation) return null;
    const verb = event.body.how === 'followUp' ? 'follows up with' : 'delegates to';
    return `${who} ${verb} @${event.body.assignee}: ${clip(event.body.task)}`;
  }
  if (event.kind === 'delegation.ended')
    return to.length === 0 ? null : `${who}${whom}: ${event.body.outcome}: ${clip(event.body.result)}`;
  if (event.kind === 'question')
    return `${who} asks ${event.body.by.join(', ') || 'people'}: ${clip(event.body.text)}`;
  if (event.kind === 'question.answered') return `${who} answers${whom}: ${clip(event.body.content)}`;
  if (event.kind === 'approval.requested')
    return `${who} asks for approval to call ${event.body.tool} ${clip(event.body.args)}`;
  if (event.kind === 'approval.decided')
    return `${who}: ${event.body.outcome}${event.body.note ? `, ${clip(event.body.note)}` : ''}`;
  if (event.kind === 'tool.result') {
    const { name, outcome, content } = event.body;
    return hasOwnEvent(name) || outcome === 'waiting' ? null : `${who} ${name}: ${clip(content)}`;
  }
  if (event.kind === 'todos')
    return `${who} notes: ${event.body.items.map(({ text, status }) => `[${status}] ${text}`).join(' ')}`;
  if (event.kind === 'guard.stopped' || event.kind === 'turn.failed' || event.kind === 'error')
    return `! ${event.body.message}`;
  return null;
}

function hasOwnEvent(tool: string): boolean {
  return ['delegate', 'follow_up', 'ask', 'todo', 'handoff'].includes(tool);
}

function clip(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > MOST_TEXT ? `${line.slice(0, MOST_TEXT).toWellFormed()}…` : line;
}
