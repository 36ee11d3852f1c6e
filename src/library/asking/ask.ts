import type { Wait, Work } from '../../actors/conversations/conversation-state.ts';
import { TroupeError } from '../../base/errors.ts';
import {
  addUsage,
  type DelegationOpenedBody,
  type Event,
  type EventOf,
  NO_USAGE,
  type Note,
  type Usage,
  type Author,
  eventOf,
  isTaskEnd,
  runFactOf,
  isAbout,
} from '../../events/index.ts';
import type { Answer, StuckLine, AgentInfo, Asked, NewMessage, Failure, Troupe } from '../troupe.ts';
import { storedEvents, followConversation, type Frame } from './follow.ts';
import { activeRuns } from '../../machines/run-fold.ts';
import { foldTask, isDue, newTaskFold, type TaskFold } from '../../machines/task-fold.ts';
import type { Clock } from '../../base/clock.ts';

/** The cost of one turn of an agent, US dollars. Null: its model has no price. */
export type CostOf = (agent: string, usage: Usage) => number | null;

/** Follows a message to its end. Yields what happens, and returns the answer. Throws `aborted` if `signal` ends first. */
export async function* ask(sent: Event, parts: ExchangeParts, costOf: CostOf): AsyncGenerator<Note, Answer> {
  const { troupe, signal } = parts;
  const answers = awaitAnswers(sent);
  const { events, waits } = yield* exchange(sent, answers, parts);
  if (signal.aborted) {
    const causes = causesOf(answers, await withUnread(troupe, events), await stuckWords(parts));
    const message = ['the wait for an answer was ended', atWork(answers), ...causes].join('; ');
    throw new TroupeError('aborted', message);
  }
  const ends = [...answers.ends, ...(await endsBelow(troupe, answers.delegations))];
  return answerOf(answers, { events, waits, ends, costOf });
}

function atWork({ missing }: Answers): string {
  return missing.length === 0
    ? 'nobody is to answer'
    : `at work: ${missing.map((agent) => `@${agent}`).join(', ')}`;
}

const MOST_CAUSES = 5;

/** What the agents that have not answered wait for, with the words of the last failed call. */
function causesOf({ missing }: Answers, events: readonly Event[], stuck: readonly StuckLine[]): string[] {
  const silent = missing.filter((agent) => !stuck.some((line) => line.agent === agent));
  const lines = [...stuck, ...silent.map((agent) => ({ agent, words: '' }))];
  const causes = lines.flatMap(({ agent, words }) => {
    const error = events.findLast(({ kind, author }) => kind === 'error' && author.id === agent);
    const isTold = missing.includes(agent) && error?.kind === 'error';
    const failure = isTold ? `its last call failed: ${error.body.message}` : '';
    if (words === '') return failure === '' ? [] : [`@${agent}: ${failure}`];
    return [`@${agent} ${words}${failure === '' ? '' : ` (${failure})`}`];
  });
  return causes.slice(0, MOST_CAUSES);
}

/** With the events since the log was read: the last call may have failed since. */
async function withUnread(troupe: ExchangeParts['troupe'], events: readonly Event[]): Promise<Event[]> {
  const { conversation, seq } = events.at(-1)!;
  // A failed read must not hide the end of the wait from the caller.
  const unread = await troupe.events(conversation, { after: seq }).catch(() => null);
  return [...events, ...(unread?.events ?? [])];
}

/** What goes on in the conversation and its threads; nothing if that cannot be read, for example while the troupe closes. */
async function stuckWords({ stuck }: ExchangeParts): Promise<readonly StuckLine[]> {
  try {
    return await stuck();
  } catch {
    return []; // must not hide the end of the wait from the caller
  }
}

/** The ends of the turns of these tasks and of tasks below them. Their threads may have had other tasks before. */
async function endsBelow(
  troupe: ExchangeParts['troupe'],
  given: readonly DelegationOpenedBody[],
): Promise<Event[]> {
  const found: Event[] = [];
  const own = new Set(given.map(({ delegation }) => delegation));
  const threads = new Set(given.map(({ thread }) => thread));
  // The loop also visits the threads that it adds.
  for (const thread of threads) {
    let isOwn = false;
    for await (const event of storedEvents(troupe, thread, 0)) {
      if (event.kind === 'delegation.opened' && event.body.thread === thread)
        isOwn ||= own.has(event.body.delegation);
      else if (event.kind === 'delegation.opened' && isOwn) {
        own.add(event.body.delegation);
        threads.add(event.body.thread);
      }
      if (event.kind === 'turn.done' && isOwn) found.push(event);
    }
  }
  return found;
}

function answerOf(
  answers: Answers,
  { events, waits, ends, costOf }: { events: Event[]; waits: Wait[]; ends: readonly Event[]; costOf: CostOf },
): Answer {
  // Other people may have asked meanwhile and got replies.
  const turns = new Set(answers.ends.map(({ turn }) => turn));
  const messages = answers.replies.filter(
    (event): event is EventOf<'message'> => event.kind === 'message' && turns.has(event.turn),
  );
  const last = messages.at(-1)?.body;
  let usage = NO_USAGE;
  let cost: number | null = 0;
  for (const { kind, author, body } of ends) {
    if (kind !== 'turn.done') continue;
    usage = addUsage(usage, body.usage);
    const own = costOf(author.id, body.usage);
    cost = cost === null || own === null ? null : cost + own;
  }
  return {
    text: last?.content ?? (waits.length > 0 ? wordsSoFar(events, turns) : ''),
    ...(last && 'data' in last && last.data !== undefined && { data: last.data }),
    outcome: answers.failures.length > 0 ? 'failed' : waits.length > 0 ? 'waiting' : 'answered',
    replies: messages,
    events,
    waits,
    failures: answers.failures,
    usage,
    cost,
  };
}

/** The last text that came with the calls of these turns: a waiting turn has no reply yet. */
function wordsSoFar(events: readonly Event[], turns: ReadonlySet<Event['turn']>): string {
  const step = events.findLast(
    (event) => event.kind === 'step' && turns.has(event.turn) && event.body.content !== '',
  );
  return step?.kind === 'step' ? step.body.content : '';
}

/** Author of a question that names none. */
const ASKING_AUTHOR: Author = { kind: 'user', id: 'user', name: 'User' };

/** A message, by `author` if it names no author. Throws `event_invalid` for anything but a text or an object. */
export function messageFrom(asked: Asked, author: Author = ASKING_AUTHOR): NewMessage {
  if (typeof asked !== 'string' && (typeof asked !== 'object' || asked === null))
    throw new TroupeError('event_invalid', 'message: give a text, or an object such as { to, content }', {
      path: 'message',
    });
  const message = typeof asked === 'string' ? { content: asked } : asked;
  return { ...message, author: message.author ?? author };
}

/** A question without an addressee is for the only agent, if there is only one. */
export function addressed(message: NewMessage, agents: readonly Pick<AgentInfo, 'id'>[]): NewMessage {
  const [only, ...others] = agents;
  const isClear = message.to === undefined && message.replyTo === undefined && only && others.length === 0;
  return isClear ? { ...message, to: [only.id] } : message;
}

/** The error for a message that nobody is going to answer. */
export function nobodyAnswers(): TroupeError {
  return new TroupeError(
    'agent_unknown',
    'the message is stored, but no agent is to answer it: name one in "to" (APIs of OpenAI: as the model; MCP: as the agent), or set routing or defaults.respondWhenUnaddressed',
  );
}

/**
 * The missing answers to a message. A message is answered when every addressed agent has ended a turn that covers it, as
 * has every agent addressed by agents since, no delegation is open, and no workflow runs.
 */
export interface Answers {
  /** Takes in what happens. */
  note(event: Event): void;
  /** Expects no more answers of this agent. */
  giveUp(agent: string, code: string, message: string): void;
  /** Agents with a missing answer. */
  readonly missing: readonly string[];
  /** Missing answers, each with the event that the agent has not yet answered. */
  readonly unanswered: readonly { agent: string; seq: number }[];
  /** Whether every agent that was asked has answered. */
  readonly areComplete: boolean;
  /** Messages of agents since, oldest first. */
  readonly replies: readonly Event[];
  /** Ends of the turns that answered the message or a message that followed from it. */
  readonly ends: readonly Event[];
  /** The tasks for other agents that were opened since. */
  readonly delegations: readonly DelegationOpenedBody[];
  /** Why agents gave no answer. */
  readonly failures: readonly Failure[];
}

/** Event id of the runtime's notice that an agent takes no more turns; captures the agent's id. */
const STOPPED = /^failed:([^:]+):/;

/** Waits for the answers to a message, or to the directive that begins a run. */
export function awaitAnswers(sent: Event): Answers {
  const missing = new Map(sent.to.map((agent) => [`${agent} ${sent.seq}`, { agent, seq: sent.seq }]));
  const replies: Event[] = [];
  const failures: Failure[] = [];
  const ends: Event[] = [];
  /** Tasks opened since the message. */
  const tasks = newTaskFold();
  if (sent.kind === 'run.directive') foldTask(tasks, sent);

  function end(event: Event, covers: readonly number[]): boolean {
    const found = covers.filter((seq) => missing.delete(`${event.author.id} ${seq}`));
    if (found.length > 0) ends.push(event);
    return found.length > 0;
  }

  function note(event: Event): void {
    if (event.seq <= sent.seq) return;
    foldTask(tasks, event);
    const isStep = runFactOf(event.id)?.part === 'step';
    if (event.author.kind === 'agent' || isStep || isTaskEnd(event)) {
      for (const agent of event.to) missing.set(`${agent} ${event.seq}`, { agent, seq: event.seq });
      if (event.kind === 'message' && !isStep) replies.push(event);
    }
    const done = eventOf(event, 'turn.done');
    if (done) end(done, done.body.covers);
    noteFailure(event);
  }

  function noteFailure(event: Event): void {
    const failed = eventOf(event, 'turn.failed');
    if (failed && end(failed, failed.body.covers)) {
      const { code, message } = failed.body;
      failures.push({ agent: failed.author.id, code, message });
    }
    const aborted = eventOf(event, 'turn.aborted');
    if (aborted && end(aborted, aborted.body.covers)) {
      const message = `the turn was stopped by ${aborted.body.by}`;
      failures.push({ agent: aborted.author.id, code: 'aborted', message });
    }
    const error = eventOf(event, 'error');
    const stopped = error && STOPPED.exec(error.id)?.[1];
    if (stopped && unanswered().some(({ agent }) => agent === stopped)) {
      giveUp(stopped, error.body.code, error.body.message);
    }
  }

  function giveUp(agent: string, code: string, message: string): void {
    for (const [key, each] of missing) if (each.agent === agent) missing.delete(key);
    failures.push({ agent, code, message });
  }

  /** A task's end wakes its owner only when its whole group has ended. Later ends wake no agent. */
  function unanswered(): { agent: string; seq: number }[] {
    return [...missing.values()].filter(({ seq }) => !tasks.ended.has(seq) || isDue(tasks, seq));
  }

  return {
    note,
    giveUp,
    get missing() {
      return [...new Set(unanswered().map(({ agent }) => agent))];
    },
    get unanswered() {
      return unanswered();
    },
    get areComplete() {
      return unanswered().length === 0 && !isWorkOpen(tasks);
    },
    replies,
    ends,
    get delegations() {
      return delegationsIn(tasks).map(({ body }) => body);
    },
    failures,
  };
}

function delegationsIn({ tasks }: TaskFold) {
  return [...tasks.values()].filter((task) => task.kind === 'delegation');
}

/** Whether a delegation has not ended, or a workflow runs. */
function isWorkOpen(tasks: TaskFold): boolean {
  return delegationsIn(tasks).some(({ end }) => !end) || activeRuns(tasks.runs).length > 0;
}

interface ExchangeParts {
  troupe: Troupe;
  clock: Clock;
  /** The work in the conversation, and the waits of tasks that were opened since the message. */
  work: () => Promise<Work>;
  /** What goes on there, and for how long, whether or not it counts as stuck. */
  stuck: () => Promise<readonly StuckLine[]>;
  signal: AbortSignal;
}

interface Exchanged {
  /** The message and all events of its conversation since, oldest first. */
  events: Event[];
  /** What it waits for. */
  waits: Wait[];
}

/** Work in threads and in other processes sends no notice here, so the logs are checked this often, ms. */
const LOOK_MS = 250;

/**
 * What follows from a message, in the order of the logs of the conversation and of the threads of its tasks, until it
 * is answered or nobody works on it any more. Leaving early, or an aborted `signal`, only ends the reading.
 */
async function* exchange(
  sent: Event,
  answers: Answers,
  { troupe, clock, work, signal }: ExchangeParts,
): AsyncGenerator<Note, Exchanged> {
  const { conversation } = sent;
  const events = [sent];
  let last = sent.seq;

  /** Null while there is work, or events that were not read yet. */
  async function waits(): Promise<Wait[] | null> {
    const found = await work();
    // Others may still be working on something else.
    if (answers.areComplete) return found.waits;
    if (found.isUnderWay) return null;
    const unread = await troupe.events(conversation, { after: last, limit: 1 });
    return unread.events.length > 0 ? null : found.waits;
  }

  const frames = followConversation(conversation, last, {
    troupe,
    clock,
    signal,
    lookMs: LOOK_MS,
    heartbeatMs: LOOK_MS,
    threads: true,
  });
  for await (const frame of frames) {
    if (frame.type === 'event' && frame.event.conversation === conversation) {
      answers.note(frame.event);
      events.push(frame.event);
      last = frame.event.seq;
    }
    // The conversation was deleted: nothing more comes of the message.
    if (frame.type === 'reset') break;
    if (frame.type !== 'heartbeat' && frame.type !== 'gap') yield frame;
    const left = answers.areComplete || mayBeOver(frame) ? await waits() : null;
    if (left) return { events, waits: left };
  }
  return { events, waits: [] };
}

/** Whether the work may have ended with this: a turn's end, or a request to people. Else it is checked when all is quiet. */
function mayBeOver(frame: Frame): boolean {
  if (frame.type === 'heartbeat') return true;
  if (frame.type !== 'event') return false;
  const { kind } = frame.event;
  return (
    isAbout(frame.event, 'turnEnd') ||
    kind === 'question' ||
    kind === 'approval.requested' ||
    kind === 'error'
  );
}
