import { messageText } from '../context/message-text.ts';
import type { Event } from '../events/index.ts';
import { clip } from './output.ts';
import { ranges } from './render-prompt.ts';

/** What an event says, in a line. */
export function describeEvent(event: Event): string {
  const who = event.author.name;
  const to = event.to.length > 0 ? ` → ${event.to.map((agent) => `@${agent}`).join(' ')}` : '';
  switch (event.kind) {
    case 'message':
      return `${who}${to}: ${messageText(event.body)}`;
    case 'injection':
      return `${who}${to}: ${event.body.content}`;
    case 'step':
      if (event.body.calls.length === 0) return `${who}: ${event.body.content}`;
      return `${who} calls ${event.body.calls.map(({ name, args }) => `${name} ${args}`).join(', ')}`;
    case 'tool.result':
      return `${event.body.name} ${event.body.outcome}: ${event.body.content}`;
    case 'handoff':
      return `${who}${to}: ${event.body.summary.goal}`;
    case 'turn.started':
      return `sees up to ${event.body.upTo}, answers ${ranges(event.body.inputs)}`;
    case 'turn.done': {
      const { steps, usage, cut } = event.body;
      const end = cut ? ', cut off at maxOutputTokens' : '';
      return `${steps} step(s), ${usage.input} tokens in, ${usage.output} out${end}`;
    }
    case 'turn.failed':
    case 'error':
      return `${event.body.code}: ${event.body.message}`;
    case 'session.started':
    case 'session.resumed':
    case 'session.rewound':
    case 'session.compacted':
    case 'session.lost':
    case 'session.rebuilt': {
      const { provider, session, reason } = event.body;
      return `${provider} ${session}${reason === undefined ? '' : ` (${reason})`}`;
    }
    case 'turn.aborted':
      return `stopped by ${event.body.by}`;
    case 'turn.steered':
      return `takes in ${ranges(event.body.inputs)} before step ${event.body.step + 1}`;
    case 'delegation.opened':
      return `${event.body.delegation}: @${event.body.delegator} gives @${event.body.assignee}: ${clip(event.body.task.replace(/\s+/g, ' '), 200)}`;
    case 'delegation.completed':
    case 'delegation.aborted':
      return `${event.body.delegation} ${event.body.outcome}: ${event.body.result}`;
    case 'question': {
      const { question, text, choices } = event.body;
      return `${question}: ${who} asks: ${text}${choices ? ` [${choices.join(' / ')}]` : ''}`;
    }
    case 'question.answered': {
      const { question, outcome, content } = event.body;
      return `${question} ${outcome} by ${who}: ${content}`;
    }
    case 'approval.requested':
      return `${event.body.request}: ${who} asks to call ${event.body.tool} ${event.body.args}`;
    case 'approval.decided': {
      const { request, outcome, note } = event.body;
      return `${request} ${outcome} by ${who}${note === '' ? '' : `: ${note}`}`;
    }
    case 'guard.stopped':
      return `${event.body.guard}: ${event.body.message}; to go on: ${event.body.goOn}`;
    case 'run.directive': {
      const { run, directive, brief, status, step, reason = '', goOn } = event.body;
      const at = step ? `, step ${step.number} of ${step.of} (${step.id}, @${step.agent})` : '';
      if (status === 'failed') return `run ${run}${at} failed: ${reason}${goOn ? `; to go on: ${goOn}` : ''}`;
      return `run ${run}${at} is ${status}: ${directive}${brief === '' ? '' : `: ${brief}`}`;
    }
    case 'phase.changed': {
      const { phase, from, instructions } = event.body;
      return `${who} begins the phase ${phase}${from === undefined ? '' : ` after ${from}`}${instructions === '' ? '' : `: ${instructions}`}`;
    }
    case 'todos': {
      const items = event.body.items.map(({ text, status }) => `[${status}] ${text}`);
      return `${who} notes ${items.join(', ') || 'that nothing is left to do'}`;
    }
    default:
      return `${who}${to}: ${JSON.stringify(event.body)}`;
  }
}
