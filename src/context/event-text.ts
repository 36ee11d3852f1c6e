import {
  type CommandBody,
  type Event,
  type EventDraft,
  type HandoffSummary,
  isTaskEnd,
  isAbout,
} from '../events/index.ts';
import { messageText } from './message-text.ts';

/** The words of an event as some agent may come to read them; '' for what no prompt ever shows. */
export function eventText(event: EventDraft | Event): string {
  if (!isAbout(event, 'prompt')) return '';
  switch (event.kind) {
    case 'message':
      return messageText(event.body);
    case 'injection':
    case 'tool.result':
      return event.body.content;
    case 'step':
      return [event.body.content, ...event.body.calls.map((call) => `${call.name} ${call.args}`)].join('\n');
    case 'handoff':
      return handoffText(event.body.summary);
    case 'phase.changed':
      return event.body.summary ? handoffText(event.body.summary) : '';
    case 'delegation.opened':
      return event.body.task;
    case 'delegation.completed':
    case 'delegation.aborted':
    case 'question.answered':
    case 'approval.decided':
      return taskEndText(event);
    case 'command':
      return retryText(event.body) ?? '';
    case 'turn.failed':
    case 'turn.aborted':
      return event.body.partial;
  }
}

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

type TaskEnd = Extract<
  Event | EventDraft,
  { kind: 'delegation.completed' | 'delegation.aborted' | 'question.answered' | 'approval.decided' }
>;

/** What became of a task, as whoever waited for it reads it. */
function taskEndText(event: TaskEnd): string {
  switch (event.kind) {
    case 'question.answered': {
      const { question, outcome, content } = event.body;
      return outcome === 'answered'
        ? `(answer to ${question})\n${content}`
        : `(${question} is ${outcome}) ${content}`;
    }
    case 'approval.decided':
      return `(${event.body.request} is ${event.body.outcome}) ${event.body.note}`.trimEnd();
    case 'delegation.completed':
    case 'delegation.aborted': {
      const { delegation, outcome, result } = event.body;
      return outcome === 'done'
        ? `(result of ${delegation})\n${result}`
        : `(${delegation} ${ENDED[outcome]}) ${result}`;
    }
  }
}

const ENDED = { failed: 'failed', aborted: 'was called off' } as const;

/** What an agent is told when its turn is asked for again; null for every other command. */
function retryText({ command, code, inputs = [] }: CommandBody): string | null {
  if (command !== 'retry') return null;
  const how = code === undefined ? 'was stopped' : `failed (${code})`;
  const given = inputs.length === 0 ? '' : ` (event${inputs.length > 1 ? 's' : ''} ${inputs.join(', ')})`;
  return `Your last turn ${how} and is asked for again: answer now what it was given${given}. What it said and did before is above and holds.`;
}

/** Whether it is for an agent to see: what is between two is not for the others. */
export function isShownTo(agent: string, event: Event): boolean {
  const isBetweenTwo = event.kind === 'delegation.opened' || event.kind === 'command' || isTaskEnd(event);
  return !isBetweenTwo || event.to.some((each) => each === agent);
}

/** What another agent may see of an event: calls, results and bare failures are the author's own; null hides it. */
export function visibleText(event: Event): string | null {
  if (!isAbout(event, 'prompt')) return null;
  if (event.kind === 'injection' && event.body.oneStep) return null;
  switch (event.kind) {
    case 'message':
    case 'injection':
    case 'step': {
      const text = event.kind === 'message' ? messageText(event.body) : event.body.content;
      return text.trim() === '' ? null : text;
    }
    case 'handoff':
      return `(handoff)\n${handoffText(event.body.summary)}`;
    case 'phase.changed':
      return event.body.summary
        ? `(the phase is now ${event.body.phase})\n${handoffText(event.body.summary)}`
        : null;
    case 'delegation.opened':
    case 'delegation.completed':
    case 'delegation.aborted':
    case 'question.answered':
    case 'approval.decided':
      return eventText(event);
    case 'command':
      return retryText(event.body);
    case 'turn.failed':
    case 'turn.aborted':
      return event.body.partial.trim() === '' ? null : `(interrupted) ${event.body.partial}`;
    case 'tool.result':
      return null;
  }
}

/** Tokens of what others see of an event: of a step, its share without the calls. */
export function visibleTokens(event: Event): number {
  if (event.kind !== 'step') return event.tokens;
  const { content, calls } = event.body;
  const hidden = calls.reduce((sum, { name, args }) => sum + name.length + args.length + 2, 0);
  return Math.ceil((event.tokens * content.length) / (content.length + hidden));
}
