import { setTimeout as pause } from 'node:timers/promises';
import { type Event, eventOf, isTaskEnd, runFactOf } from '../events/index.ts';
import type { ActorStatus } from '../troupe.ts';
import type { Client, Frame } from './client.ts';
import { openWaits, type Wait, waitText } from './tasks.ts';
import { errorText, paint, print, printJson } from './output.ts';
import { createReplyPrinter } from './reply-printer.ts';
import { activeRuns } from '../machines/run-book.ts';
import { foldTask, isDue, newTaskBook } from '../machines/task-book.ts';

/** A server does not tell when all is quiet: after this long without a word it is looked whether anybody is at work. */
const LOOK_MS = 1_000;
/** Looks in a row that find nobody: between two tasks nobody may seem to be. */
const IDLE_LOOKS = 2;

/**
 * Does something in a conversation, as sending a message, and shows what agents say to it until all have answered, or
 * nobody can: then what they wait for is told, with the command that helps.
 */
export async function waitForAnswers(
  client: Client,
  conversation: string,
  act: () => Promise<Event>,
  { stop, asJson }: { stop: AbortController; asJson: boolean },
): Promise<void> {
  const head = await client.head(conversation);
  // Watching begins before the message is there, so that the reply is seen from its first word.
  const early = follow(client, conversation, head, stop.signal);
  const parked = head > 0 ? (await client.actors(conversation)).filter(isParked) : [];
  const event = await act();
  const answers = awaitAnswers(event);
  // Of one that is set aside only now the log says why.
  const still = parked.length > 0 ? (await client.actors(conversation)).filter(isParked) : [];
  for (const each of still) if (parked.some(({ agent }) => agent === each.agent)) giveUpOn(each, answers);
  // One that was there before has its answers, perhaps, before the head.
  const frames = event.seq > head ? early : follow(client, conversation, event.seq, stop.signal);
  const printer = asJson ? null : createReplyPrinter();
  const quiet = client.isDirect ? client.idle().then(() => endAt(client, conversation, frames)) : null;
  // Awaited below; only where the command is interrupted the store may be closed under it.
  quiet?.catch(() => {});
  for (let looks = 0; !answers.areComplete && looks < IDLE_LOOKS;) {
    const frame = await frames.next();
    if (frame === null) break;
    if (frame === 'quiet') {
      looks =
        client.isDirect || (await isAnybodyAtWork(client, answers, conversation, frames.seen()))
          ? 0
          : looks + 1;
      continue;
    }
    looks = 0;
    if (frame.type === 'event') answers.note(frame.event);
    printer?.show(frame, event.seq);
  }
  if (!stop.signal.aborted) await quiet;
  const { waits } = stop.signal.aborted ? { waits: [] } : await openWaits(client, conversation);
  const waiting = new Set<string>(waits.map(({ task }) => task.owner));
  for (const agent of answers.missing) {
    if (!waiting.has(agent)) answers.giveUp(agent, 'aborted', `@${agent} has not answered`);
  }
  report(event, answers, waits, asJson);
}

interface Frames {
  /** The seq of the last event that `next` gave. */
  seen(): number;
  /** Null once nothing more is to come; `quiet` where nothing came for a while. */
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
  // Cut short when there is work.
  quiet.catch(() => {});
  try {
    return await Promise.race([work, quiet]);
  } finally {
    done.abort();
  }
}

/** When all is quiet, an answer that is not in the log yet will not come. */
async function endAt(client: Client, conversation: string, frames: Frames): Promise<void> {
  frames.endAfter(await client.head(conversation));
}

function isParked({ status }: ActorStatus): boolean {
  return status === 'paused' || status === 'failed' || status === 'retired';
}

function giveUpOn({ agent, status, problem }: ActorStatus, answers: Answers): void {
  if (!answers.missing.includes(agent)) return;
  const message = `@${agent} is ${status} and takes no turns${problem === undefined ? '' : `: ${problem}`}`;
  answers.giveUp(agent, 'command_refused', message);
}

/** Who has looked at what addressed it and takes no turn waits for something itself. */
async function isAnybodyAtWork(
  client: Client,
  answers: Answers,
  conversation: string,
  seen: number,
): Promise<boolean> {
  const actors = await client.actors(conversation);
  const parked = actors.filter((each) => isParked(each) && answers.missing.includes(each.agent));
  // The notice with the reason is in the log before an agent is set aside: it may be there and not have come yet.
  if (parked.length > 0 && (await client.head(conversation)) > seen) return true;
  for (const each of parked) giveUpOn(each, answers);
  const isMissing = answers.unanswered.some(({ agent, seq }) => {
    const actor = actors.find((each) => each.agent === agent);
    return !actor || actor.turn !== null || actor.lastProcessedIndex < seq;
  });
  return isMissing || (await openWaits(client, conversation)).atWork;
}

function report(event: Event, { replies, failures }: Answers, waits: readonly Wait[], asJson: boolean): void {
  if (asJson) printJson({ event, replies, waiting: waits });
  else if (event.kind === 'message' && event.to.length === 0)
    print(paint('dim', `seq ${event.seq}: stored; it addresses nobody`));
  if (!asJson) for (const wait of waits) print(waitText(wait));
  for (const { agent, ...failure } of failures) {
    process.stderr.write(errorText({ ...failure, data: { agent } }, asJson));
  }
  if (failures.length > 0) process.exitCode = 1;
}

export function showAccepted(event: Event, asJson: boolean): void {
  if (asJson) return printJson({ event });
  const to = event.to.length > 0 ? event.to.map((agent) => `@${agent}`).join(', ') : 'nobody in particular';
  print(`accepted as seq ${event.seq} of ${event.conversation}, for ${to}`);
}

/**
 * Which answers to a message are still missing. It is answered when every addressed agent has ended a turn that
 * covers it, so has everyone whom agents have addressed since, no task is open that one agent has given to another, and no
 * run of a workflow is under way.
 */
interface Answers {
  note(event: Event): void;
  /** No answer of this agent will come. */
  giveUp(agent: string, code: string, message: string): void;
  /** Agents whose answer is missing. */
  readonly missing: readonly string[];
  /** The same, each with the event that it has not answered. */
  readonly unanswered: readonly { agent: string; seq: number }[];
  readonly areComplete: boolean;
  readonly replies: readonly Event[];
  readonly failures: readonly { agent: string; code: string; message: string }[];
}

/** Id of the runtime's notice that an agent takes no more turns. */
const SET_ASIDE = /^failed:([^:]+):/;

function awaitAnswers(sent: Event): Answers {
  const missing = new Map(sent.to.map((agent) => [`${agent} ${sent.seq}`, { agent, seq: sent.seq }]));
  const replies: Event[] = [];
  const failures: { agent: string; code: string; message: string }[] = [];
  /** Of what was opened since. */
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
    const setAside = error && SET_ASIDE.exec(error.id)?.[1];
    if (setAside && unanswered().some(({ agent }) => agent === setAside)) {
      giveUp(setAside, error.body.code, error.body.message);
    }
  }

  function giveUp(agent: string, code: string, message: string): void {
    for (const [key, each] of missing) if (each.agent === agent) missing.delete(key);
    failures.push({ agent, code, message });
  }

  /** The end of a task wakes its owner with the others that it waits for, and after those are given, nobody. */
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
