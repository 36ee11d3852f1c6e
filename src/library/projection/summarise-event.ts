import { type ByKind, forKind } from '../../events/aspects.ts';
import type { KindAbout } from '../../events/kinds.ts';
import type { Event, EventKind, EventOf, JoinPolicy, RerunChange } from '../../events/index.ts';
import { messageText } from '../../events/message-text.ts';
import {
  COMPACTION_PHASES,
  COMPACTION_REASONS,
  COMPACTION_STRATEGIES,
  oneLine,
  plural,
  ranges,
} from './words.ts';

/** `head` names the speaker and the addressees. Lists with a column for them show only `text`. */
interface EventText {
  head: string;
  text: string;
}

/** An event in one line. For an unknown kind, the kind with its body. */
export function summariseEvent(event: Event): string {
  const described = eventInWords(event);
  return oneLine(described ? described.text : (describeUpkeep(event) ?? rawText(event)));
}

/** The kind with its body as JSON. */
export function rawText({ kind, body }: { kind: string; body: unknown }): string {
  return `${kind} ${JSON.stringify(body) ?? ''}`.trimEnd();
}

/** An event in full. Null for bookkeeping and for unknown kinds. */
export function eventInWords(event: Event): EventText | null {
  const task = forKind(TASKS, event);
  return task === undefined ? (forKind(ACTIVITY, event) ?? null) : plain(task);
}

type TaskKind = KindAbout<'taskOpening' | 'taskEnd'>;

const TASKS: ByKind<TaskKind, string> = {
  'delegation.opened': ({ body: { delegation, delegator, assignee, task } }) =>
    `${delegation}: @${delegator} gives @${assignee}: ${oneLine(task)}`,
  'delegation.ended': ({ body: { delegation, outcome, result } }) => `${delegation} ${outcome}: ${result}`,
  question: ({ author, body: { question, text, choices } }) =>
    `${question}: ${author.name} asks: ${text}${choices ? ` [${choices.join(' / ')}]` : ''}`,
  'question.answered': ({ author, body: { question, outcome, content } }) =>
    `${question} ${outcome} by ${author.name}: ${content}`,
  'approval.requested': ({ author, body }) =>
    `${body.request}: ${author.name} asks to call ${body.tool} ${body.args}`,
  'approval.decided': ({ author, body: { request, outcome, note, args = '' } }) =>
    `${request} ${outcome} by ${author.name}${after(' with changed arguments ', args)}${after(': ', note)}`,
};

const ACTIVITY: ByKind<Exclude<EventKind, TaskKind | KindAbout<'upkeep'>>, EventText> = {
  message: (event) => said(event, messageText(event.body)),
  notice: (event) => said(event, messageText(event.body)),
  injection: (event) => said(event, event.body.content),
  handoff: (event) => said(event, event.body.summary.goal),
  step: describeStep,
  'tool.result': ({ body }) => plain(`${body.name} ${body.outcome}: ${body.content}`),
  'turn.started': ({ body }) => plain(`sees up to ${body.upTo}, answers ${ranges(body.inputs)}`),
  'turn.steered': ({ body }) => plain(`takes in ${ranges(body.inputs)} before step ${body.step + 1}`),
  'turn.done': ({ body: { steps, usage, cut } }) =>
    plain(
      `${plural(steps, 'step')}, ${usage.input} tokens in, ${usage.output} out${cut ? ', cut off at maxOutputTokens' : ''}`,
    ),
  'turn.failed': ({ body }) => plain(`${body.code}: ${body.message}`),
  'turn.aborted': ({ body }) => plain(`stopped by ${body.by}`),
  error: ({ body: { code, message, retryUntil } }) =>
    plain(
      `${code}: ${message}${retryUntil === undefined ? '' : `; tried again until ${timeOf(retryUntil)}`}`,
    ),
  'session.changed': ({ body: { change, provider, session, reason } }) =>
    plain(`${change} ${provider} ${session}${reason === undefined ? '' : ` (${reason})`}`),
  'guard.stopped': ({ body }) => plain(`${body.guard}: ${body.message}; to go on: ${body.goOn}`),
  'run.directive': describeDirective,
  'phase.changed': (event) => {
    const { phase, from, instructions } = event.body;
    return did(event, `begins the phase ${phase}${after(' after ', from)}${after(': ', instructions)}`);
  },
  todos: (event) => {
    const items = event.body.items.map(({ text, status }) => `[${status}] ${text}`);
    return did(event, `notes ${items.join(', ') || 'that nothing is left to do'}`);
  },
};

function describeStep(event: EventOf<'step'>): EventText {
  const { content, calls } = event.body;
  if (calls.length === 0) return { head: `${event.author.name}: `, text: content };
  return did(event, `calls ${calls.map(({ name, args }) => `${name} ${args}`).join(', ')}`);
}

function describeDirective({ body }: EventOf<'run.directive'>): EventText {
  const { run, directive, brief, status, step, reason = '', goOn } = body;
  const at = step ? `, step ${step.number} of ${step.of} (${step.id}, @${step.agent})` : '';
  if (status === 'failed')
    return plain(`run ${run}${at} failed: ${reason}${goOn ? `; to go on: ${goOn}` : ''}`);
  return plain(`run ${run}${at} is ${status}: ${directive}${after(': ', brief)}`);
}

/** Bookkeeping in one line; null for other events. */
function describeUpkeep(event: Event): string | null {
  return forKind(UPKEEP, event) ?? null;
}

const UPKEEP: ByKind<KindAbout<'upkeep'>, string> = {
  'membership.changed': describeMembership,
  'mode.changed': ({ body: { mode, run } }) =>
    `the mode is now ${mode}${run === undefined ? '' : ` (${run})`}`,
  command: describeCommand,
  compaction: ({ body: { number, upTo, strategy, reason, tokens } }) =>
    `compaction ${number} of 1–${upTo}: ${COMPACTION_STRATEGIES[strategy]}, as ${COMPACTION_REASONS[reason]}: ${tokens.before} tokens become ${tokens.after}`,
  'compaction.progress': describeProgress,
  prune: ({ body: { events, reason, tokens } }) =>
    `${plural(events.length, 'tool result')} shown as placeholders, as ${COMPACTION_REASONS[reason]}: ${tokens.before} → ${tokens.after} tokens`,
  baseline: ({ body: { epoch, provider, model, reason } }) =>
    `epoch ${epoch} on ${provider} ${model}: ${reason}`,
};

const JOINED: Record<JoinPolicy, string> = {
  full: '',
  summary: ' and sees a summary of what was said before',
  fresh: ' and sees nothing of what was said before',
};

function describeMembership({ body }: EventOf<'membership.changed'>): string {
  if (body.change === 'joined') return `@${body.agent} joins${JOINED[body.policy]}`;
  return `@${body.agent} ${body.blocked ? 'is blocked' : 'leaves'}${after(': ', body.reason)}`;
}

function describeCommand({ author, body }: EventOf<'command'>): string {
  const { command, agent, turn, fork, from, rerun, erasure, reason } = body;
  const about = turn ?? (agent === undefined ? '' : `@${agent}`);
  const place = fork ?? from;
  const forked = place ? `${fork ? 'to' : 'from'} ${place.conversation} at ${place.seq}` : '';
  const again = rerun
    ? `to run ${rerun.turn} again with ${rerun.change ? OTHER[rerun.change.kind] : 'no change'}`
    : '';
  const erased = erasure ? `the words of ${erasure.person} in ${plural(erasure.events.length, 'event')}` : '';
  const words = [`${author.name}: ${command}`, about, forked, again, erased].filter((part) => part !== '');
  return words.join(' ') + after(': ', reason);
}

const OTHER: Record<RerunChange['kind'], string> = {
  message: 'another message',
  instructions: 'other instructions',
  model: 'another model',
  toolResult: 'another result of a call',
};

function describeProgress({ body }: EventOf<'compaction.progress'>): string {
  const { agent, phase, reason, strategy, tokens, message } = body;
  const reached = tokens.after === null ? '' : ` → ${tokens.after}`;
  const how = strategy === undefined ? '' : `, ${COMPACTION_STRATEGIES[strategy]}`;
  const detail = message === undefined ? '' : `: ${message}`;
  return `@${agent} ${COMPACTION_PHASES[phase]}${how}, as ${COMPACTION_REASONS[reason]}: ${tokens.before}${reached} tokens${detail}`;
}

function said({ author, to }: Event, text: string): EventText {
  const recipients = to.length > 0 ? ` → ${to.map((agent) => `@${agent}`).join(' ')}` : '';
  return { head: `${author.name}${recipients}: `, text };
}

function did({ author }: Event, text: string): EventText {
  return { head: `${author.name} `, text };
}

function plain(text: string): EventText {
  return { head: '', text };
}

/** A part with its separator; '' if the part is empty. */
function after(separator: string, text = ''): string {
  return text === '' ? '' : `${separator}${text}`;
}

/** Time of day in UTC. An imported log may hold numbers that are no dates. */
function timeOf(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? 'an unknown time' : `${date.toISOString().slice(11, 19)} UTC`;
}
