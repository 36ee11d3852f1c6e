import { type Event, isAbout } from '../../events/index.ts';
import { handoffText } from '../event-text.ts';
import { messageText } from '../message-text.ts';

/** What somebody said with an event, calls and results left out; '' where it is bookkeeping. */
export function said(event: Event): string {
  if (!isAbout(event, 'words')) return '';
  switch (event.kind) {
    case 'message':
      return messageText(event.body);
    case 'step':
      return event.body.content;
    case 'injection':
      return event.body.oneStep ? '' : event.body.content;
    case 'handoff':
      return handoffText(event.body.summary);
    case 'turn.failed':
    case 'turn.aborted':
      return event.body.partial;
    case 'question':
      return event.body.text;
    case 'question.answered':
      return event.body.content;
    case 'approval.requested':
      return event.body.args;
    case 'delegation.opened':
      return event.body.task;
    case 'delegation.completed':
    case 'delegation.aborted':
      return event.body.result;
    case 'phase.changed':
      // Its instructions are not for all, and told anew to whom they are for.
      return event.body.summary ? handoffText(event.body.summary) : '';
    case 'run.directive':
      return event.body.directive;
    case 'tool.result':
    case 'approval.decided':
    case 'joined':
    case 'left':
    case 'mode.changed':
    case 'command':
      return '';
  }
}

/**
 * Of what was said, the words in which its author may demand something. A summary of a hand-over or a phase is what
 * others said, whoever makes the change, and what is attached is a document.
 */
export function demanded(event: Event, text: string): string {
  if (event.kind === 'handoff' || event.kind === 'phase.changed') return '';
  if (event.kind !== 'message' || !event.body.attachments) return text;
  return event.body.content.slice(0, text.length);
}

/** The same as a quote shows it: a key event says in words what happened. */
export function inWords(event: Event): string {
  if (!isAbout(event, 'words')) return '';
  switch (event.kind) {
    case 'handoff':
      return `(handoff)\n${said(event)}`;
    case 'delegation.opened':
      return `(delegation ${event.body.delegation} to @${event.body.assignee}) ${event.body.task}`;
    case 'delegation.completed':
      return `(result of delegation ${event.body.delegation}) ${event.body.result}`;
    case 'delegation.aborted':
      return `(delegation ${event.body.delegation} was aborted) ${event.body.result}`;
    case 'question':
      return `(question ${event.body.question}) ${event.body.text}`;
    case 'question.answered':
      return `(question ${event.body.question} is ${event.body.outcome}) ${event.body.content}`;
    case 'approval.requested':
      return `(approval ${event.body.request} of ${event.body.tool} requested) ${event.body.args}`;
    case 'approval.decided':
      return `(approval ${event.body.request} is ${event.body.outcome})`;
    case 'mode.changed':
      return `(mode is now ${event.body.mode})`;
    case 'phase.changed':
      return `(phase is now ${event.body.phase}) ${said(event)}`.trimEnd();
    case 'run.directive':
      return `(directive of run ${event.body.run}) ${event.body.directive}`;
    case 'turn.failed':
    case 'turn.aborted':
      return said(event) === '' ? '' : `(interrupted) ${said(event)}`;
    case 'message':
    case 'step':
    case 'injection':
    case 'joined':
    case 'left':
    case 'command':
      return said(event);
    case 'tool.result':
      return '';
  }
}
