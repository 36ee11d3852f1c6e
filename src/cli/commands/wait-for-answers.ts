import { setTimeout as pause } from 'node:timers/promises';
import { type Event, eventOf, isTaskEnd, runFactOf } from '../../events/index.ts';
import type { ActorStatus } from '../../troupe.ts';
import type { Client, Frame } from '../client/client.ts';
import { openWaits, type Wait, waitText } from './tasks.ts';
import { errorText, paint, print, printJson } from '../render/output.ts';
import { createReplyPrinter, type ReplyPrinter } from '../render/reply-printer.ts';
import { activeRuns } from '../../machines/run-book.ts';
import { foldTask, isDue, newTaskBook } from '../../machines/task-book.ts';

/** A server does not report that all agents are idle. After this long without a frame, their state is read. */
const LOOK_MS = 1_000;
/** Consecutive idle checks that end the wait: between two tasks all agents may look idle. */
const IDLE_LOOKS = 2;

/**
 * Acts in a conversation, for example sends a message, and shows the replies until all agents have answered or none can.
 * In that case it prints what they wait for, with the command that helps.
 */
export async function waitForAnswers(
  client: Client,
  conversation: string,
  act: () => Promise<Event>,
  { stop, asJson }: { stop: AbortController; asJson: boolean },
): Promise<void> {
  const head = await client.head(conversation);
  // Watching begins before the message is stored, so that the reply is shown from its first word.
  const early = follow(client, conversation, head, stop.signal);
  const stopped = head > 0 ? await stoppedAgents(client, conversation) : [];
  const event = await act();
  const answers = awaitAnswers(event);
  // Agents that stop later write the reason to the log.
  const still = stopped.length > 0 ? await stoppedAgents(client, conversation) : [];
  for (const each of still) if (stopped.some(({ agent }) => agent === each.agent)) giveUpOn(each, answers);
  // A message that was already stored may have been answered before the head.
  const frames = event.seq > head ? early : follow(client, conversation, event.seq, stop.signal);
  const printer = asJson ? null : createReplyPrinter();
  const quiet = client.isDirect ? client.idle().then(() => endAt(client, conversation, frames)) : null;
  // Awaited below, unless the command is interrupted; the store closes then.
  quiet?.catch(() => {});
  await showUntilAnswered({ client, conversation, frames, answers, printer, after: event.seq });
  if (!stop.signal.aborted) await quiet;
  const { waits } = stop.signal.aborted ? { waits: [] } : await openWaits(client, conversation);
  const waiting = new Set<string>(waits.map(({ task }) => task.owner));
  for (const agent of answers.missing) {
    if (!waiting.has(agent)) answers.giveUp(agent, 'aborted', `@${agent} has not answered`);
  }
  report(event, answers, waits, asJson);
}

interface Shown {
  client: Client;
  conversation: string;
  frames: Frames;
  answers: Answers;
  printer: ReplyPrinter | null;
  /** Seq of the event that is answered. */
  after: number;
}

async function showUntilAnswered(shown: Shown): Promise<void> {
  const { client, conversation, frames, answers, printer, after } = shown;
  for (let looks = 0; !answers.areComplete && looks < IDLE_LOOKS;) {
    const frame = await frames.next();
    if (frame === null) break;
    if (frame === 'quiet') {
      looks =
        client.isDirect || (await isAnyAgentAtWork(client, answers, conversation, frames.seen()))
          ? 0
          : looks + 1;
      continue;
    }
    looks = 0;
    if (frame.type === 'event') answers.note(frame.event);
    printer?.show(frame, after);
  }
}

interface Frames {
  /** Seq of the last event returned by `next`. */
  seen(): number;
  /** The next frame; null at the end, `quiet` after `LOOK_MS` without a frame. */
  next(): Promise<Frame | 'quiet' | null>;
  /** Ends after the event with this seq. */
  endAfter(seq: number): void;
}

function follow(client: Client, conversation: string, after: number, signal: AbortSignal): Frames {
  const end = new AbortController();
  const source = client.follow(conversation, after, AbortSignal.any([signal, end.signal]));
  let seen = after;
  let last = Infinity;
  let pending: Promise<IteratorResult<Frame, void>> | null = source.next();
  // Awaited in `next`; a refused send must not leave it unhandled.
  pending.catch(() => {});
  return {
    seen: () => seen,
    async next() {
      if (seen >= last) return null;
      pending ??= source.next();
      const got = await orQuiet(pending);
      if (got === 'quiet') return got;
      pending = null;
      if (got.done) return null;
      if (got.value.type === 'event') seen = got.value.event.seq;
      return got.value;
    },
    endAfter(seq) {
      last = seq;
      if (seen >= last) end.abort();
    },
  };
}

async function orQuiet<T>(work: Promise<T>): Promise<T | 'quiet'> {
  const done = new AbortController();
  const quiet = pause(LOOK_MS, 'quiet' as const, { signal: done.signal });
  // Aborted when the work is done.
  quiet.catch(() => {});
  try {
    return await Promise.race([work, quiet]);
  } finally {
    done.abort();
  }
}

/** Once all agents are idle, the log has every answer. */
async function endAt(client: Client, conversation: string, frames: Frames): Promise<void> {
  frames.endAfter(await client.head(conversation));
}

async function stoppedAgents(client: Client, conversation: string): Promise<ActorStatus[]> {
  return (await client.actors(conversation)).filter(isStopped);
}

function isStopped({ status }: ActorStatus): boolean {
  return status === 'paused' || status === 'failed' || status === 'retired';
}

function giveUpOn({ agent, status, problem }: ActorStatus, answers: Answers): void {
  if (!answers.missing.includes(agent)) return;
  const message = `@${agent} is ${status} and takes no turns${problem === undefined ? '' : `: ${problem}`}`;
  answers.giveUp(agent, 'command_refused', message);
}

/** An idle agent that has read its messages waits for something itself, and is not at work. */
async function isAnyAgentAtWork(
  client: Client,
  answers: Answers,
  conversation: string,
  seen: number,
): Promise<boolean> {
  const actors = await client.actors(conversation);
  const stopped = actors.filter((each) => isStopped(each) && answers.missing.includes(each.agent));
  // The reason is in the log before the agent stops, so it may be stored and not yet received.
  if (stopped.length > 0 && (await client.head(conversation)) > seen) return true;
  for (const each of stopped) giveUpOn(each, answers);
  const isMissing = answers.unanswered.some(({ agent, seq }) => {
    const actor = actors.find((each) => each.agent === agent);
    return !actor || actor.turn !== null || actor.lastProcessedIndex < seq;
  });
  return isMissing || (await openWaits(client, conversation)).atWork;
}

function report(event: Event, { replies, failures }: Answers, waits: readonly Wait[], asJson: boolean): void {
  if (asJson) printJson({ event, replies, waiting: waits });
  else if (event.to.length === 0 && (event.kind === 'message' || event.kind === 'notice'))
    print(
      paint(
        'dim',
        `seq ${event.seq}: stored; ${event.kind === 'notice' ? 'no agent sees it' : 'it addresses no agent'}`,
      ),
    );
  if (!asJson) for (const wait of waits) print(waitText(wait));
  for (const { agent, ...failure } of failures) {
    process.stderr.write(errorText({ ...failure, data: { agent } }, asJson));
  }
  if (failures.length > 0) process.exitCode = 1;
}

export function showAccepted(event: Event, asJson: boolean): void {
  if (asJson) return printJson({ event });
  const nobody = event.kind === 'notice' ? 'people only' : 'no agent in particular';
  const to = event.to.length > 0 ? event.to.map((agent) => `@${agent}`).join(', ') : nobody;
  print(`accepted as seq ${event.seq} of ${event.conversation}, for ${to}`);
}

/**
 * The missing answers to a message. A message is answered when every addressed agent has ended a turn that covers it, as
 * has every agent addressed by agents since, no delegation is open, and no workflow runs.
 */
interface Answers {
  note(event: Event): void;
  /** Expects no more answers of this agent. */
  giveUp(agent: string, code: string, message: string): void;
  /** Agents with a missing answer. */
  readonly missing: readonly string[];
  /** Missing answers, each with the event that the agent has not answered. */
  readonly unanswered: readonly { agent: string; seq: number }[];
  readonly areComplete: boolean;
  readonly replies: readonly Event[];
  readonly failures: readonly { agent: string; code: string; message: string }[];
}

/** Event id of the runtime's notice that an agent takes no more turns; captures the agent's id. */
const STOPPED = /^failed:([^:]+):/;

function awaitAnswers(sent: Event): Answers {
  const missing = new Map(sent.to.map((agent) => [`${agent} ${sent.seq}`, { agent, seq: sent.seq }]));
  const replies: Event[] = [];
  const failures: { agent: string; code: string; message: string }[] = [];
  /** Tasks opened since the message. */
  const tasks = newTaskBook();
  if (sent.kind === 'run.directive') foldTask(tasks, sent);

  function end(event: Event, covers: readonly number[]): boolean {
    const found = covers.filter((seq) => missing.delete(`${event.author.id} ${seq}`));
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
      const isGiven = [...tasks.tasks.values()].some(
        ({ kind, end: ended }) => kind === 'delegation' && !ended,
      );
      return unanswered().length === 0 && !isGiven && activeRuns(tasks.runs).length === 0;
    },
    replies,
    failures,
  };
}
