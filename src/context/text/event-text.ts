import { TEXTS } from '../../events/model-texts.ts';
import { capped } from './cut-text.ts';
import {
  type CommandBody,
  type DelegationEndedBody,
  type Event,
  type EventDraft,
  type EventOf,
  type PhaseChangedBody,
  handoffText,
  type ImageRef,
  isAbout,
  isTaskEnd,
  messageText,
  taskText,
} from '../../events/index.ts';

/** The words of an event for prompts; '' for events that no prompt shows. */
export function eventText(event: EventDraft | Event): string {
  if (event.kind === 'message') return messageText(event.body);
  if (!isAbout(event, 'prompt')) return '';
  if (isAbout(event, 'taskEnd')) return taskEndText(event);
  switch (event.kind) {
    case 'injection':
    case 'tool.result':
      return event.body.content;
    case 'step':
      return [event.body.content, ...event.body.calls.map((call) => `${call.name} ${call.args}`)].join('\n');
    case 'handoff':
      return handoffText(event.body.summary);
    case 'phase.changed':
      return phaseSummary(event.body);
    case 'delegation.opened':
      return taskText(event);
    case 'command':
      return retryText(event.body) ?? '';
    case 'turn.failed':
    case 'turn.aborted':
      return event.body.partial;
  }
}

/** The outcome of the phase that has ended; '' without one. */
export function phaseSummary({ summary }: PhaseChangedBody): string {
  return summary ? handoffText(summary) : '';
}

type TaskEnd = Extract<
  Event | EventDraft,
  { kind: 'delegation.ended' | 'question.answered' | 'approval.decided' }
>;

/** Maximum characters of changed arguments in the message about the change. The call itself has them whole. */
const MAX_ARGS = 1_000;

/** A delegation by its id, with the beginning of its task if that is recorded. */
export function taskNamed({ delegation, task }: Pick<DelegationEndedBody, 'delegation' | 'task'>): string {
  return task === undefined ? delegation : `${delegation}, ${JSON.stringify(task)}`;
}

function taskEndText(event: TaskEnd): string {
  switch (event.kind) {
    case 'question.answered': {
      const { question, outcome, content } = event.body;
      return outcome === 'answered'
        ? `(answer to ${question})\n${content}`
        : `(${question} is ${outcome}) ${content}`;
    }
    case 'approval.decided': {
      const { request, outcome, note, args } = event.body;
      const how = args === undefined ? '' : `, with other arguments than you gave: ${capped(args, MAX_ARGS)}`;
      return `(${request} is ${outcome}${how}) ${note}`.trimEnd();
    }
    case 'delegation.ended': {
      const { outcome, result } = event.body;
      const which = taskNamed(event.body);
      return outcome === 'done'
        ? `(result of ${which})\n${result}`
        : `(${which} ${ENDED[outcome]}) ${result}`;
    }
  }
}

const ENDED = { failed: 'failed', cancelled: 'was cancelled' } as const;

/** Comes before what a broken turn said, and is no part of the stored count. */
const INTERRUPTED = '(interrupted) ';
const INTERRUPTED_TOKENS = 3;

/** The text for an agent whose turn was requested again. Null for every other command. */
function retryText({ command, code, inputs = [] }: CommandBody): string | null {
  if (command !== 'retry') return null;
  const how = code === undefined ? 'was stopped' : `failed (${code})`;
  const given = inputs.length === 0 ? '' : ` (event${inputs.length > 1 ? 's' : ''} ${inputs.join(', ')})`;
  return TEXTS.turn.again(how, given);
}

/** Whether an agent may see the event. Events between two parties are hidden from others, unless they have `told`. */
export function isShownTo(agent: string, event: Event): boolean {
  const isBetweenTwo = event.kind === 'delegation.opened' || event.kind === 'command' || isTaskEnd(event);
  return !isBetweenTwo || event.to.some((each) => each === agent) || 'told' in event.body;
}

/**
 * The part of an event that other agents see. Null if they see nothing: calls, results and failures without words are only for
 * the author.
 */
export function visibleText(event: Event): string | null {
  if (event.kind === 'message') return unlessBlank(messageText(event.body));
  if (!isAbout(event, 'prompt')) return null;
  if (isAbout(event, 'taskEnd')) return taskEndText(event);
  switch (event.kind) {
    case 'injection':
      return event.body.oneStep ? null : unlessBlank(event.body.content);
    case 'step':
      return unlessBlank(event.body.content);
    case 'handoff':
      return `(handoff)\n${handoffText(event.body.summary)}`;
    case 'phase.changed':
      return phaseText(event.body);
    case 'delegation.opened':
      return taskText(event);
    case 'command':
      return retryText(event.body);
    case 'turn.failed':
    case 'turn.aborted':
      return unlessBlank(event.body.partial, INTERRUPTED);
    case 'tool.result':
      return event.body.told === undefined ? null : toldText(event);
  }
}

/** Results that others may see. */
export type Telling = EventOf<'tool.result' | 'approval.decided' | 'delegation.ended'>;

/** A result in the words for others, who see it below a head that says whose it is. */
export function toldText(event: Telling): string {
  switch (event.kind) {
    case 'tool.result': {
      const { args, content } = event.body;
      return args === undefined ? content : `with ${args}\n${content}`;
    }
    case 'approval.decided': {
      const { call, args, note } = event.body;
      const edited = args === undefined ? '' : `with these arguments instead: ${capped(args, MAX_ARGS)}`;
      return [call ? `${call.tool} ${call.args}` : '', edited, note].filter(Boolean).join('\n');
    }
    case 'delegation.ended': {
      const { delegation, task, result } = event.body;
      return `${taskNamed({ delegation, task })}\n${result}`;
    }
  }
}

function phaseText({ phase, summary }: PhaseChangedBody): string | null {
  return summary ? `(the phase is now ${phase})\n${handoffText(summary)}` : null;
}

function unlessBlank(text: string, head = ''): string | null {
  return text.trim() === '' ? null : head + text;
}

/** Tokens of the part that others see: of a step without the calls, of a broken turn with the words that say so. */
export function visibleTokens(event: Event): number {
  if (event.kind === 'turn.failed' || event.kind === 'turn.aborted') return event.tokens + INTERRUPTED_TOKENS;
  if (event.kind !== 'step') return event.tokens;
  const { content, calls } = event.body;
  const hidden = calls.reduce((sum, { name, args }) => sum + name.length + args.length + 2, 0);
  return Math.ceil((event.tokens * content.length) / (content.length + hidden));
}

export function imagesOf(event: Event | EventDraft): ImageRef[] {
  if (event.kind !== 'message' && event.kind !== 'delegation.opened') return [];
  const images: ImageRef[] = [];
  for (const each of event.body.attachments ?? [])
    if (each.type === 'image') images.push({ hash: each.hash, mediaType: each.mediaType });
  return images;
}

/** A text that represents images when prompts are compared as text; '' for none. */
export function imagesText(images: readonly ImageRef[] = []): string {
  return images.length === 0 ? '' : JSON.stringify(images.map(({ hash, mediaType }) => [hash, mediaType]));
}
