import { setTimeout as pause } from 'node:timers/promises';
import { type Answers, awaitAnswers } from '../../library/asking/answers.ts';
import type { Event } from '../../events/index.ts';
import type { ActorStatus } from '../../library/troupe.ts';
import type { Client, Frame } from '../client/client.ts';
import { openWaits, type Wait, waitText } from './tasks.ts';
import { errorText, paint, print, printJson } from '../render/output.ts';
import { createReplyPrinter, type ReplyPrinter } from '../render/reply-printer.ts';

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
  // Answers, and the reasons of agents that stop, are stored before the agents' state: they may be still to come.
  if ((await client.head(conversation)) > seen) return true;
  const stopped = actors.filter((each) => isStopped(each) && answers.missing.includes(each.agent));
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
