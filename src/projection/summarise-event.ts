import { isAbout } from '../events/aspects.ts';
import type { Event, EventOf, KindAbout } from '../events/index.ts';
import { messageText, oneLine, ranges } from './words.ts';

/** `head` says who speaks to whom, for lists that have no place of their own for it. */
export interface Told {
  head: string;
  text: string;
}

/** What an event says, in a line; of a kind that this version does not know, what it holds. */
export function summariseEvent(event: Event): string {
  const told = tellEvent(event);
  if (told) return oneLine(told.text);
  return oneLine(tellUpkeep(event) ?? rawText(event));
}

/** The kind with its body as JSON. */
export function rawText({ kind, body }: { kind: string; body: unknown }): string {
  return `${kind} ${JSON.stringify(body) ?? ''}`.trimEnd();
}

/** In words, whole; null for what is bookkeeping. */
export function tellEvent(event: Event): Told | null {
  const who = event.author.name;
  const to = event.to.length > 0 ? ` → ${event.to.map((agent) => `@${agent}`).join(' ')}` : '';
  const said = (text: string): Told => ({ head: `${who}${to}: `, text });
  const does = (text: string): Told => ({ head: `${who} `, text });
  const plain = (text: string): Told => ({ head: '', text });
  if (isAbout(event, 'taskOpening') || isAbout(event, 'taskEnd')) return plain(tellTask(event));
  if (isAbout(event, 'upkeep')) return null;
  switch (event.kind) {
    case 'message':
      return said(messageText(event.body));
    case 'injection':
      return said(event.body.content);
    case 'step': {
      const { content, calls } = event.body;
      if (calls.length === 0) return { head: `${who}: `, text: content };
      return does(`calls ${calls.map(({ name, args }) => `${name} ${args}`).join(', ')}`);
    }
    case 'tool.result':
      return plain(`${event.body.name} ${event.body.outcome}: ${event.body.content}`);
    case 'handoff':
      return said(event.body.summary.goal);
    case 'turn.started':
      return plain(`sees up to ${event.body.upTo}, answers ${ranges(event.body.inputs)}`);
    case 'turn.done': {
      const { steps, usage, cut } = event.body;
      const end = cut ? ', cut off at maxOutputTokens' : '';
      return plain(`${steps} step(s), ${usage.input} tokens in, ${usage.output} out${end}`);
    }
    case 'turn.failed':
      return plain(`${event.body.code}: ${event.body.message}`);
    case 'error': {
      const { code, message, retryUntil } = event.body;
      const waits = retryUntil === undefined ? '' : `; tried again until ${timeOf(retryUntil)}`;
      return plain(`${code}: ${message}${waits}`);
    }
    case 'session.started':
    case 'session.resumed':
    case 'session.rewound':
    case 'session.compacted':
    case 'session.lost':
    case 'session.rebuilt': {
      const { provider, session, reason } = event.body;
      return plain(`${provider} ${session}${reason === undefined ? '' : ` (${reason})`}`);
    }
    case 'turn.aborted':
      return plain(`stopped by ${event.body.by}`);
    case 'turn.steered':
      return plain(`takes in ${ranges(event.body.inputs)} before step ${event.body.step + 1}`);
    case 'guard.stopped':
      return plain(`${event.body.guard}: ${event.body.message}; to go on: ${event.body.goOn}`);
    case 'run.directive': {
      const { run, directive, brief, status, step, reason = '', goOn } = event.body;
      const at = step ? `, step ${step.number} of ${step.of} (${step.id}, @${step.agent})` : '';
      if (status === 'failed')
        return plain(`run ${run}${at} failed: ${reason}${goOn ? `; to go on: ${goOn}` : ''}`);
      return plain(`run ${run}${at} is ${status}: ${directive}${brief === '' ? '' : `: ${brief}`}`);
    }
    case 'phase.changed': {
      const { phase, from, instructions } = event.body;
      return does(
        `begins the phase ${phase}${from === undefined ? '' : ` after ${from}`}${instructions === '' ? '' : `: ${instructions}`}`,
      );
    }
    case 'todos': {
      const items = event.body.items.map(({ text, status }) => `[${status}] ${text}`);
      return does(`notes ${items.join(', ') || 'that nothing is left to do'}`);
    }
  }
}

function tellTask(event: EventOf<KindAbout<'taskOpening' | 'taskEnd'>>): string {
  const who = event.author.name;
  switch (event.kind) {
    case 'delegation.opened': {
      const { delegation, delegator, assignee, task } = event.body;
      return `${delegation}: @${delegator} gives @${assignee}: ${oneLine(task)}`;
    }
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
  }
}

/** UTC, as logs have it. The log says it, so it may be no date at all. */
function timeOf(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? 'an unknown time' : `${date.toISOString().slice(11, 19)} UTC`;
}

/** Bookkeeping in words: who takes part, how relief went, what became of the prompt; null for anything else. */
function tellUpkeep(event: Event): string | null {
  if (!isAbout(event, 'upkeep')) return null;
  switch (event.kind) {
    case 'joined':
      return `@${event.body.agent} joins (${event.body.policy})`;
    case 'left': {
      const { agent, reason, blocked } = event.body;
      return `@${agent} ${blocked ? 'is blocked' : 'leaves'}${reason === '' ? '' : `: ${reason}`}`;
    }
    case 'mode.changed':
      return `the mode is now ${event.body.mode}${event.body.run === undefined ? '' : ` (${event.body.run})`}`;
    case 'archived':
    case 'reopened':
      return `${event.kind}${event.body.reason === '' ? '' : `: ${event.body.reason}`}`;
    case 'command':
      return tellCommand(event);
    case 'compaction': {
      const { number, upTo, strategy, reason, tokens } = event.body;
      return `compaction ${number} of 1–${upTo} by ${strategy} (${reason}): ${tokens.before} tokens become ${tokens.after}`;
    }
    case 'compaction.started':
    case 'compaction.pruned':
    case 'compaction.summarising':
    case 'compaction.done':
    case 'compaction.failed': {
      const { agent, reason, strategy, tokens, message } = event.body;
      const phase = event.kind.slice('compaction.'.length);
      const after = tokens.after === null ? '' : ` → ${tokens.after}`;
      const how = strategy === undefined ? '' : ` by ${strategy}`;
      return `@${agent} ${phase}${how} (${reason}): ${tokens.before}${after} tokens${message === undefined ? '' : `: ${message}`}`;
    }
    case 'prune': {
      const { events, reason, tokens } = event.body;
      return `${events.length} tool result(s) are shown as placeholders (${reason}): ${tokens.before} → ${tokens.after} tokens`;
    }
    case 'baseline': {
      const { epoch, provider, model, reason } = event.body;
      return `epoch ${epoch} on ${provider} ${model}: ${reason}`;
    }
  }
}

function tellCommand({ author, body }: EventOf<'command'>): string {
  const { command, agent, turn, fork, from } = body;
  const about = turn ?? (agent === undefined ? '' : `@${agent}`);
  const place = fork ?? from;
  const forked = place ? `${fork ? 'to' : 'from'} ${place.conversation} at ${place.seq}` : '';
  return [`${author.name}: ${command}`, about, forked].filter((part) => part !== '').join(' ');
}
