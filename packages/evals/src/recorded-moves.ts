import {
  type Event,
  type EventOf,
  eventOf,
  TroupeError,
  withoutStaleNote,
  type TroupeInput,
} from './troupe.ts';
import { type ConversationRun, callsOf, type RunTurn } from './conversation-run.ts';
import { minutesPass, type UserMove } from './users.ts';
import { clip } from './show-run.ts';
import type { RecordedAnswer, RecordedCall } from './recording.ts';

/** The moves of a conversation's people, and the texts that they attached, by name. */
interface RecordedMoves {
  moves: UserMove[];
  files: Record<string, string>;
}

const MOST_QUESTION = 60;

/**
 * The people of a run as moves. Something that came by itself, such as a reminder or a schedule's message, becomes minutes
 * that pass. `unaddressed`: the agent that answers messages without an addressee. Throws `command_refused` for something that
 * a test cannot play yet.
 */
export function recordedMoves(run: ConversationRun, unaddressed: string | undefined): RecordedMoves {
  const { events } = run;
  const minutesBefore = waitsOf(run);
  const made: RecordedMoves = { moves: [], files: {} };
  const asked = new Map<string, Event>();
  const hasSeveral = events.filter(({ kind }) => kind === 'question').length > 1;
  for (const event of events) {
    if (event.kind === 'question') asked.set(event.body.question, event);
    if (event.kind === 'approval.requested') asked.set(event.body.request, event);
    const isDue = isTimed(event);
    const move = isDue ? null : moveOf(event, { asked, hasSeveral, unaddressed, files: made.files });
    if (!move && !isDue) continue;
    const minutes = minutesBefore(event, isDue);
    if (minutes > 0) made.moves.push(minutesPass(minutes));
    if (move) made.moves.push(move);
  }
  return made;
}

interface Known {
  asked: ReadonlyMap<string, Event>;
  hasSeveral: boolean;
  unaddressed: string | undefined;
  files: Record<string, string>;
}

function moveOf(event: Event, known: Known): UserMove | null {
  if (event.author.kind !== 'user') return null;
  if (isPersons(event)) return saidMove(event as EventOf<'message'>, known);
  if (event.kind === 'question.answered') return answeredMove(event, known);
  if (event.kind === 'approval.decided') return decidedMove(event, known);
  if (event.kind === 'command' && !['archive', 'reopen'].includes(event.body.command))
    throw cannot(event, `gave the command ${event.body.command}`);
  return null;
}

function answeredMove(event: EventOf<'question.answered'>, { asked, hasSeveral }: Known): UserMove | null {
  const { author: by, body } = event;
  if (body.outcome !== 'answered') return null;
  const text = eventOf(asked.get(body.question) ?? event, 'question')?.body.text ?? '';
  const question = hasSeveral ? text.slice(0, MOST_QUESTION).toWellFormed() : undefined;
  return { move: 'answer', by, content: body.content, question };
}

function decidedMove(event: EventOf<'approval.decided'>, { asked }: Known): UserMove | null {
  const { author: by, body } = event;
  if (body.outcome !== 'approved' && body.outcome !== 'denied') return null;
  if (body.args !== undefined) throw cannot(event, 'approved a call with other arguments');
  const tool = eventOf(asked.get(body.request) ?? event, 'approval.requested')?.body.tool;
  const note = body.note === '' ? undefined : body.note;
  return { move: body.outcome === 'approved' ? 'approve' : 'deny', by, tool, note };
}

function saidMove(event: EventOf<'message'>, { unaddressed, files }: Known): UserMove {
  const { author: by, body, context } = event;
  const isFound = context?.routed !== undefined || event.to.length === 0 || event.to.join() === unaddressed;
  const to = isFound ? undefined : [...event.to];
  const attachments = body.attachments?.map((attachment, at) => {
    if (attachment.type !== 'text')
      throw cannot(event, `attached ${attachment.name ?? 'a file'}, which is no text`);
    const { name = `text-${at + 1}`, mediaType, text } = attachment;
    if (files[name] !== undefined && files[name] !== text)
      throw cannot(event, `attached two texts of the name ${name}`);
    files[name] = text;
    return { name, mediaType, data: new TextEncoder().encode(text) };
  });
  return { move: 'say', by, content: body.content, to, ...(attachments && { attachments }) };
}

/** The event came by itself, because time passed. */
function isTimed(event: Event): boolean {
  const { id, kind, body, author } = event;
  if (scheduledMessage(event)) return true;
  if (kind === 'message') return author.kind === 'system' && id.startsWith('remind:');
  if (kind === 'question.answered' || kind === 'approval.decided') return body.outcome === 'expired';
  return false;
}

function cannot({ author, seq, conversation }: Event, what: string): TroupeError {
  const message = `${clip(author.name)} ${what} (#${seq} of ${conversation}): a test cannot play that yet`;
  return new TroupeError('command_refused', message, { conversation, seq });
}

/** The answers of a conversation's models and the results of its tools. */
export interface RecordedTurns {
  answers: RecordedAnswer[];
  /** All calls with a result. Arguments are as the model wrote them. */
  calls: (Omit<RecordedCall, 'args'> & { agent: string; args: string })[];
}

/** Reads a run that was played by Troupe. */
export function recordedTurns(run: ConversationRun): RecordedTurns {
  const requests = new Set(
    run.events.flatMap((event) => eventOf(event, 'approval.requested')?.body.request ?? []),
  );
  const calls = callsOf(run).flatMap(({ turn, tool, args, result }) => {
    const outcome = result?.body.outcome;
    if (!result || (outcome !== 'done' && outcome !== 'failed')) return [];
    // An approved call runs in a later turn.
    const of = result.turn ?? turn.id;
    return [
      { turn: of, agent: turn.agent, tool, args, outcome, result: withoutStaleNote(result.body.content) },
    ];
  });
  return { answers: run.turns.flatMap((turn) => answersOf(turn, requests)), calls };
}

function answersOf(turn: RunTurn, requests: ReadonlySet<string>): RecordedAnswer[] {
  const answers: RecordedAnswer[] = [];
  let steps = 0;
  for (const event of turn.events) {
    if (event.kind === 'step') {
      const { index, content, calls } = event.body;
      steps = index + 1;
      // The step of an approved call was made by the engine, not by the model.
      if (calls.some(({ id }) => requests.has(id))) continue;
      answers.push({ turn: turn.id, step: steps, content, ...(calls.length > 0 && { calls }) });
    }
    if (event.kind === 'message' && event.author.kind === 'agent')
      answers.push({ turn: turn.id, step: steps + 1, content: event.body.content });
    if (event.kind === 'turn.failed') {
      const { code, message, partial } = event.body;
      answers.push({ turn: turn.id, step: steps + 1, content: partial, failed: `${code}: ${message}` });
    }
  }
  return answers;
}

function isPersons({ kind, author, turn }: Event): boolean {
  return kind === 'message' && author.kind === 'user' && turn === undefined;
}

/** A message that a schedule of the company sent. */
interface ScheduledMessage {
  /** Name of the schedule. */
  schedule: string;
  /** The scheduled time, ms since the epoch. The message may have been sent later. */
  due: number;
}

const MS_PER_MINUTE = 60_000;
/** Largest time of a Date, ms. */
const LAST_TIME = 8.64e15;

/** Null if no schedule sent it. */
function scheduledMessage({ id, kind, author }: Event): ScheduledMessage | null {
  const [of, schedule = '', minute = ''] = id.split(':');
  if (kind !== 'message' || author.kind !== 'system' || of !== 'schedule') return null;
  const due = Number(minute) * MS_PER_MINUTE;
  return Number.isSafeInteger(due) && due <= LAST_TIME ? { schedule, due } : null;
}

/** Start of the test's clock, if something depends on the time of day; else null. */
export function startOf({ events }: ConversationRun): number | null {
  const [first] = events;
  const dues = events.flatMap((event) => scheduledMessage(event)?.due ?? []);
  if (!first || (dues.length === 0 && !events.some(remindsAtTime))) return null;
  // A schedule sends nothing for the time at which the clock begins.
  return dues.reduce((start, due) => Math.min(start, due - MS_PER_MINUTE), first.at);
}

/** Minutes that pass before an event. `comesByItself`: the event comes only after they have passed. */
type Waits = (event: Event, comesByItself: boolean) => number;

/** Counts from the start of the clock if the run has one, else from the last event. */
function waitsOf(run: ConversationRun): Waits {
  const start = startOf(run);
  return start === null ? waitsFromLast(run) : waitsFromStart(run, start);
}

function waitsFromLast({ events }: ConversationRun): Waits {
  let since = events[0]?.at ?? 0;
  return ({ at }, comesByItself) => {
    const minutes = comesByItself ? Math.ceil((at - since) / MS_PER_MINUTE) : 0;
    since = at;
    return Math.max(0, minutes);
  };
}

function waitsFromStart({ events }: ConversationRun, start: number): Waits {
  const nextDues = new Map<Event, number>();
  let next = Infinity;
  for (const event of events.toReversed()) {
    nextDues.set(event, next);
    next = scheduledMessage(event)?.due ?? next;
  }
  let passed = 0;
  return (event, comesByItself) => {
    const until = scheduledMessage(event)?.due ?? event.at;
    // A message that was sent late comes on time in the test, so people who spoke before it must speak before its scheduled time.
    const before = Math.min(until, (nextDues.get(event) ?? Infinity) - 1);
    const target = comesByItself
      ? Math.ceil((until - start) / MS_PER_MINUTE)
      : Math.floor((before - start) / MS_PER_MINUTE);
    const minutes = Math.max(0, target - passed);
    passed += minutes;
    return minutes;
  };
}

/** An agent asked to be reminded at a time, not after some minutes. */
function remindsAtTime({ kind, body }: Event): boolean {
  return kind === 'step' && body.calls.some(({ name, args }) => name === 'remind' && args.includes('"at"'));
}

/** A schedule that sent a message, but that the company does not have for this conversation. */
export function unknownSchedule(
  { events, conversation }: ConversationRun,
  { schedules = [] }: Pick<TroupeInput, 'schedules'>,
): string | undefined {
  const known = new Set(schedules.flatMap((each) => (each.conversation === conversation ? each.name : [])));
  const sent = events.flatMap((event) => scheduledMessage(event)?.schedule ?? []);
  return sent.find((name) => !known.has(name));
}

/** The difference between what schedules sent in the two runs. Null if they sent the same. */
export function differenceOfSchedules(recorded: ConversationRun, played: ConversationRun): string | null {
  const then = messagesOf(recorded);
  const now = messagesOf(played);
  const missing = then.find((message) => !now.includes(message));
  if (missing) return `${missing} then, and does not in the test`;
  const more = now.find((message) => !then.includes(message));
  return more ? `${more} in the test, and did not then` : null;
}

function messagesOf({ events }: ConversationRun): string[] {
  return events.flatMap((event) => {
    const message = scheduledMessage(event);
    if (!message) return [];
    return [`the schedule ${message.schedule} sends its message of ${new Date(message.due).toISOString()}`];
  });
}

/** A person's text, and what an agent did until the next text of people. */
interface Round {
  said: EventOf<'message'>[];
  done: Event[];
  agent: string;
}

const NO_RESULT = 'the conversation has no result of this call';
const NO_ANSWER = 'the conversation has no answer here';

/** An imported conversation has no turns: everything an agent did between two texts of people counts as one turn. */
export function isImported({ turns, events }: ConversationRun): boolean {
  return turns.length === 0 && events.some(({ author }) => author.kind === 'agent');
}

export function importedMoves(run: ConversationRun, unaddressed: string | undefined): RecordedMoves {
  const moves = roundsOf(run).flatMap(({ said, agent }) => {
    const by = said[0]?.author;
    const content = said.map(({ body }) => body.content).join('\n\n');
    return by ? [{ move: 'say', by, content, to: agent === unaddressed ? undefined : [agent] } as const] : [];
  });
  return { moves, files: {} };
}

export function importedTurns(run: ConversationRun): RecordedTurns {
  const made: RecordedTurns = { answers: [], calls: [] };
  const numbers = new Map<string, number>();
  for (const { done, agent } of roundsOf(run)) {
    const number = (numbers.get(agent) ?? 0) + 1;
    numbers.set(agent, number);
    addTurn(made, { id: `${run.conversation}:${agent}:${number}`, agent, events: done });
  }
  return made;
}

function addTurn(
  made: RecordedTurns,
  { id: turn, agent, events }: { id: string; agent: string; events: readonly Event[] },
): void {
  const asked = new Map<string, { turn: string; agent: string; tool: string; args: string }>();
  const words: string[] = [];
  let step = 1;
  for (const { kind, body } of events) {
    if (kind === 'message') words.push(body.content);
    if (kind === 'step') {
      // A turn has one reply. Text before further calls is joined to it.
      const content = [...words.splice(0), body.content].filter((text) => text !== '').join('\n\n');
      made.answers.push({ turn, step, content, calls: body.calls });
      step += 1;
      for (const { id, name, args } of body.calls) asked.set(id, { turn, agent, tool: name, args });
    }
    const call = kind === 'tool.result' ? asked.get(body.call) : undefined;
    if (kind !== 'tool.result' || !call) continue;
    asked.delete(body.call);
    if (body.outcome === 'done' || body.outcome === 'failed')
      made.calls.push({ ...call, outcome: body.outcome, result: body.content });
  }
  for (const call of asked.values()) made.calls.push({ ...call, outcome: 'failed', result: NO_RESULT });
  const content = words.join('\n\n');
  made.answers.push({ turn, step, content, ...(content === '' && { failed: NO_ANSWER }) });
}

function roundsOf({ events }: ConversationRun): Round[] {
  const first = events.find(({ author }) => author.kind === 'agent')?.author.id ?? '';
  const rounds: Round[] = [];
  for (const event of events) {
    const round = rounds.at(-1);
    if (isPersons(event)) {
      const isSame = round?.done.length === 0 && round.said[0]?.author.id === event.author.id;
      if (round && isSame) round.said.push(event as EventOf<'message'>);
      else rounds.push({ said: [event as EventOf<'message'>], done: [], agent: first });
    } else if (round && event.author.kind === 'agent') {
      if (round.done.length === 0) round.agent = event.author.id;
      round.done.push(event);
    }
  }
  return rounds;
}
