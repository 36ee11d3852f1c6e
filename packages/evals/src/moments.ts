import type { Event, StandardSchema } from './troupe.ts';
import {
  type ConversationRun,
  type RunPrompt,
  type RunTurn,
  eventWords,
  eventData,
  isSpoken,
  callsOf,
  type RunCall,
} from './conversation-run.ts';
import { excerpt, howToOpen } from './show-run.ts';

/** Something that may have happened in a conversation. Made by `said`, `called` and similar functions. */
export interface Moment {
  /** Description for reports, without a full stop: `billing asks dana "Refund it?"`. */
  readonly words: string;
  /** The events at which it happened, in the order of the run. */
  find(run: ConversationRun): readonly Event[];
  /** Similar events, shown if it did not happen. */
  near(run: ConversationRun): readonly Event[];
}

/** Which occurrences count, and how many are expected. */
export interface Often {
  /** Exact number. Default: at least one. */
  times?: number | undefined;
  /** Only occurrences in the turn with this number of its agent, from 1. Default: all. */
  turn?: number | undefined;
}

/**
 * A moment that is an event: `isIt` decides. If there is none, the similar events are those for which the first condition in
 * `near` is true, else those for the next condition, and so on.
 */
function momentOf(
  words: string,
  isIt: (event: Event, run: ConversationRun) => boolean,
  ...near: readonly ((event: Event) => boolean)[]
): Moment {
  return {
    words,
    find: (run) => run.events.filter((event) => isIt(event, run)),
    near: ({ events }) => near.map((isNear) => events.filter(isNear)).find((found) => found.length > 0) ?? [],
  };
}

/** What woke an agent. */
export interface Cause {
  /** Who: an agent, a person, or `troupe` for reminders and schedules. Default: anybody. */
  by?: Who | undefined;
  /** The text that woke it. Default: any. */
  with?: What | undefined;
}

/** An agent began a turn because something addressed it. */
export function woken(agent: Who, { by, with: what }: Cause = {}): Moment {
  const cause = `${by === undefined ? '' : ` by ${whoWords(by)}`}${what === undefined ? '' : ` with ${patternWords(what)}`}`;
  return turnMoment(`${whoWords(agent)} is woken${cause}`, agent, ({ inputs }) =>
    inputs.some(
      (input) =>
        (by === undefined || isWho(by, input.author)) &&
        (what === undefined || isWhat(what, eventWords(input))),
    ),
  );
}

/** A model was sent this, in instructions, history or descriptions of tools. */
export function told(agent: Who, what: What): Moment {
  const words = `${whoWords(agent)} is told ${patternWords(what)}`;
  return turnMoment(words, agent, ({ prompts }) =>
    prompts.some((prompt) => partsOf(prompt).some((part) => isWhat(what, part))),
  );
}

/** A turn failed. */
export function failed(agent: Who, why?: What): Moment {
  const words = `${whoWords(agent)} fails${why === undefined ? '' : ` with ${patternWords(why)}`}`;
  return momentOf(
    words,
    (event) =>
      event.kind === 'turn.failed' &&
      isWho(agent, event.author) &&
      (why === undefined || isWhat(why, `${event.body.code}: ${event.body.message}`)),
    ({ kind }) => kind === 'turn.failed',
    ({ kind }) => kind === 'error',
  );
}

/** A guard stopped an agent: `hops`, `cycle`, `repeats`, `budget` and the others of docs/explanation/coordination.md. */
export function stopped(agent: Who, guard?: What): Moment {
  const words = `${whoWords(agent)} is stopped${guard === undefined ? '' : ` by the guard ${patternWords(guard)}`}`;
  return momentOf(
    words,
    (event, run) =>
      event.kind === 'guard.stopped' &&
      isAbout(agent, event, run) &&
      (guard === undefined || isWhat(guard, event.body.guard)),
    (event) => event.kind === 'guard.stopped',
  );
}

/** A guard's event has the system as author, within the turn that it stops. */
function isAbout(agent: Who, { author, turn }: Event, { turns }: ConversationRun): boolean {
  if (isWho(agent, author)) return true;
  const own = turns.find(({ id }) => id === turn);
  return own !== undefined && isAgentOf(agent, own);
}

function turnMoment(words: string, agent: Who, isIt: (turn: RunTurn) => boolean): Moment {
  const starts = (turns: readonly RunTurn[]) => turns.flatMap(({ events }) => events[0] ?? []);
  return {
    words,
    find: ({ turns }) => starts(turns.filter((turn) => isAgentOf(agent, turn) && isIt(turn))),
    near: ({ turns }) => starts(turns.filter((turn) => isAgentOf(agent, turn))),
  };
}

function isAgentOf(agent: Who, turn: RunTurn): boolean {
  return isWho(agent, turn.events[0]?.author ?? { id: turn.agent, name: turn.agent });
}

function partsOf({ messages, tools }: RunPrompt): string[] {
  return [
    ...messages.map(({ content }) => content),
    ...tools.map(({ name, description }) => `${name}: ${description}`),
  ];
}

/** Somebody said this: in a message, beside tool calls, as a question, an answer, a task or its result. */
export function said(who: Who, what: What): Moment {
  return momentOf(
    `${whoWords(who)} says ${patternWords(what)}`,
    (event) => isSpoken(event) && isWho(who, event.author) && isSaid(what, event),
    (event) => isSpoken(event) && isWho(who, event.author),
    ({ kind }) => kind === 'message',
  );
}

/**
 * An agent answered somebody: with a reply of a turn that this person or agent caused, perhaps through a handoff, a task or
 * somebody else's answer.
 */
export function answered(agent: Who, whom: Who, what?: What): Moment {
  const words = what === undefined ? '' : `: ${patternWords(what)}`;
  return momentOf(
    `${whoWords(agent)} answers ${whoWords(whom)}${words}`,
    (event, run) =>
      isReply(event, agent) && isFor(event, whom, run) && (what === undefined || isSaid(what, event)),
    (event) => isReply(event, agent),
    ({ kind, author }) => kind === 'message' && author.kind === 'agent',
  );
}

/** One agent handed the conversation over to another. */
export function handedOver(from: Who, to: Who, summary?: What): Moment {
  const words = summary === undefined ? '' : ` with ${patternWords(summary)}`;
  return momentOf(
    `${whoWords(from)} hands over to ${whoWords(to)}${words}`,
    (event) =>
      event.kind === 'handoff' &&
      isWho(from, event.author) &&
      event.to.some((id) => isWho(to, { id, name: id })) &&
      (summary === undefined || isSaid(summary, event)),
    ({ kind }) => kind === 'handoff',
    ({ kind, author }) => kind === 'message' && isWho(from, author),
  );
}

function isSaid(what: What, event: Event): boolean {
  return isWhat(what, eventWords(event), eventData(event));
}

function isReply(event: Event, agent: Who): boolean {
  return event.kind === 'message' && event.turn !== undefined && isWho(agent, event.author);
}

function isFor({ turn }: Event, whom: Who, { turns }: ConversationRun): boolean {
  return turns.some(({ id, askedBy }) => id === turn && askedBy.some((author) => isWho(whom, author)));
}

/** The result of a call. */
export interface CallOutcome {
  /** The result that the model was shown. Default: any, or none. */
  result?: What | undefined;
  /** How it ended; `waiting`: it waits for an approval. Default: any. */
  outcome?: 'done' | 'failed' | 'lost' | 'waiting' | undefined;
}

/** An agent called a tool. A call that needs approval counts once, and its result comes later. */
export function called(agent: Who, tool: What, args?: Args, expected: CallOutcome = {}): Moment {
  const parts = [
    `${whoWords(agent)} calls ${typeof tool === 'string' ? tool : patternWords(tool)}`,
    args === undefined ? '' : patternWords(args),
    expected.outcome === undefined ? '' : `and it is ${expected.outcome}`,
    expected.result === undefined ? '' : `with the result ${patternWords(expected.result)}`,
  ];
  return {
    words: parts.filter((part) => part !== '').join(' '),
    find: (run) =>
      callsOf(run).flatMap((call) =>
        isCallBy(call, agent) &&
        isTool(tool, call) &&
        (args === undefined || areArgs(args, call.args)) &&
        hasOutcome(call, expected)
          ? [call.result ?? call.step]
          : [],
      ),
    near: (run) => {
      const calls = callsOf(run).filter((call) => isTool(tool, call));
      const close = calls.length > 0 ? calls : callsOf(run).filter((call) => isCallBy(call, agent));
      return close.map(({ step, result }) => result ?? step);
    },
  };
}

/** An agent gave a task to another one. */
export function delegated(from: Who, to: Who, task?: What): Moment {
  const words = task === undefined ? '' : `: ${patternWords(task)}`;
  return momentOf(
    `${whoWords(from)} delegates to ${whoWords(to)}${words}`,
    ({ kind, author, conversation, body }) =>
      kind === 'delegation.opened' &&
      // The thread has a copy of this event.
      body.thread !== conversation &&
      isWho(from, author) &&
      isWho(to, { id: body.assignee, name: body.assignee }) &&
      (task === undefined || isWhat(task, body.task)),
    ({ kind, conversation, body }) => kind === 'delegation.opened' && body.thread !== conversation,
  );
}

/** An agent asked people. `whom`: a person who may answer. */
export function asked(agent: Who, whom: Who, question?: What, choices?: readonly string[]): Moment {
  const words = question === undefined ? '' : ` ${patternWords(question)}`;
  const offered = choices === undefined ? '' : ` with the choices ${patternWords(choices)}`;
  return momentOf(
    `${whoWords(agent)} asks ${whoWords(whom)}${words}${offered}`,
    (event) =>
      event.kind === 'question' &&
      isWho(agent, event.author) &&
      isAmong(whom, event.body.by) &&
      (question === undefined || isWhat(question, event.body.text)) &&
      (choices === undefined || choices.every((choice) => event.body.choices?.includes(choice))),
    ({ kind }) => kind === 'question',
    ({ kind, author }) => kind === 'step' && isWho(agent, author),
  );
}

/** An agent asked for the approval of a call. `whom`: a person who may decide. */
export function askedApproval(agent: Who, whom: Who, tool: What, args?: Args): Moment {
  const name = typeof tool === 'string' ? tool : patternWords(tool);
  const words = args === undefined ? '' : ` ${patternWords(args)}`;
  return momentOf(
    `${whoWords(agent)} asks ${whoWords(whom)} to approve ${name}${words}`,
    (event) =>
      event.kind === 'approval.requested' &&
      isWho(agent, event.author) &&
      isAmong(whom, event.body.by) &&
      isName(tool, event.body.tool) &&
      (args === undefined || areArgs(args, event.body.args)),
    ({ kind }) => kind === 'approval.requested',
    ({ kind, author }) => kind === 'step' && isWho(agent, author),
  );
}

/** A person decided on a call: `approved`, `denied`, `expired` or `cancelled`. */
export function decided(who: Who, outcome: What): Moment {
  return momentOf(
    `${whoWords(who)} decides ${patternWords(outcome)}`,
    ({ kind, author, body }) =>
      kind === 'approval.decided' && isWho(who, author) && isWhat(outcome, body.outcome),
    ({ kind }) => kind === 'approval.decided',
    ({ kind }) => kind === 'approval.requested',
  );
}

function isCallBy({ step }: RunCall, agent: Who): boolean {
  return isWho(agent, step.author);
}

function isTool(tool: What, call: RunCall): boolean {
  return isName(tool, call.tool);
}

/** A text must equal the whole name: `read` does not match `read_file`. */
function isName(pattern: What, name: string): boolean {
  return typeof pattern === 'string' ? pattern === name : isWhat(pattern, name);
}

function hasOutcome({ result }: RunCall, { outcome, result: what }: CallOutcome): boolean {
  if (outcome !== undefined && result?.body.outcome !== outcome) return false;
  return what === undefined || (result !== null && isWhat(what, result.body.content));
}

/** An empty list means everybody. */
function isAmong(whom: Who, by: readonly string[]): boolean {
  return by.length === 0 || by.some((id) => isWho(whom, { id, name: id }));
}

/** The result of a matcher. */
export interface Verdict {
  /** Whether it holds. */
  pass: boolean;
  /** The text for the reader if the opposite was expected. */
  message: () => string;
}

/** Whether a moment happened as often as expected. */
export function judgeMoment(run: ConversationRun, moment: Moment, { times, turn }: Often = {}): Verdict {
  const found = moment.find(run).filter((event) => turn === undefined || isInTurn(event, turn));
  const pass = times === undefined ? found.length > 0 : found.length === times;
  const often = times === undefined ? '' : `, ${count(times)}`;
  const where = turn === undefined ? '' : `, in turn ${turn}`;
  return {
    pass,
    message() {
      if (pass) return report(run, `expected that not: ${moment.words}${where}${often}`, found, 'it');
      const seen = found.length > 0 ? ` It happened ${count(found.length)}.` : '';
      const matter = found.length > 0 ? found : moment.near(run);
      return report(run, `expected that ${moment.words}${where}${often}.${seen}`, matter);
    },
  };
}

/** The expectation, the relevant part of the log, and how to open the run. */
export function report(
  run: ConversationRun,
  expected: string,
  matter: readonly Event[],
  mark: 'what comes closest' | 'it' = 'what comes closest',
): string {
  const [first] = matter;
  const about = matter.length > 0 ? `The log (> is ${mark})` : 'The end of the log';
  const open = run.place ? `\n\n${howToOpen(run, run.place, first)}` : '';
  return `${expected}\n\n${about}:\n${excerpt(run, matter)}${open}`;
}

function isInTurn({ turn }: Event, number: number): boolean {
  return turn !== undefined && turn.endsWith(`:${number}`);
}

function count(times: number): string {
  return times === 1 ? 'once' : `${times} times`;
}

/** A matcher of the test runner, such as `expect.stringContaining('…')`. */
export interface Asymmetric {
  /** Whether the value matches. */
  asymmetricMatch(value: unknown): boolean;
  /** Its words in reports. */
  toString(): string;
}

/** An agent or a person: an id or a name, a regular expression for either, or a matcher. */
export type Who = string | RegExp | Asymmetric;

/**
 * A pattern for text: a part of it, a regular expression, a matcher, or a schema of zod or another library that follows
 * Standard Schema. A schema checks the text's data: of a reply with a schema its data, else the text parsed as JSON.
 */
export type What = string | RegExp | StandardSchema | Asymmetric;

/**
 * A pattern for the arguments of a call: one for text, or an object with fields that must be there. Within the object a text
 * must match exactly, and a regular expression, schema or matcher matches as usual; further fields are allowed.
 */
export type Args = What | { readonly [field: string]: unknown };

/** Somebody in the log. */
export interface Named {
  /** Id of the agent or the person. */
  id: string;
  /** Name for people. */
  name: string;
}

export function isWho(who: Who, { id, name }: Named): boolean {
  if (typeof who === 'string') return who === id || who === name;
  return matches(who, id) || matches(who, name);
}

/** `data`: the text's data, if known. */
export function isWhat(what: What, words: string, data: unknown = parsed(words)): boolean {
  if (typeof what === 'string') return words.includes(what);
  if (isSchema(what)) return data !== undefined && accepts(what, data);
  return matches(what, words);
}

/** `text`: arguments as the model wrote them. */
function areArgs(args: Args, text: string): boolean {
  if (isPlain(args)) return contains(args, parsed(text));
  return isWhat(args, text);
}

/** The description of a pattern in a report. */
export function patternWords(pattern: unknown): string {
  if (typeof pattern === 'string') return JSON.stringify(pattern);
  if (pattern instanceof RegExp) return String(pattern);
  if (isSchema(pattern)) return `what a schema of ${pattern['~standard'].vendor} accepts`;
  if (isAsymmetric(pattern)) return String(pattern);
  if (isPlain(pattern)) {
    const fields = Object.entries(pattern).map(([name, value]) => `${name}: ${patternWords(value)}`);
    return `{ ${fields.join(', ')} }`;
  }
  if (Array.isArray(pattern)) return `[${pattern.map(patternWords).join(', ')}]`;
  return JSON.stringify(pattern) ?? String(pattern);
}

export function whoWords(who: Who): string {
  return typeof who === 'string' ? who : patternWords(who);
}

function accepts(schema: StandardSchema, value: unknown): boolean {
  const result = schema['~standard'].validate(value);
  if (result instanceof Promise) throw new TypeError('a schema of a matcher may not be asynchronous');
  return result.issues === undefined;
}

function matches(pattern: RegExp | Asymmetric | StandardSchema, value: unknown): boolean {
  if (pattern instanceof RegExp) return typeof value === 'string' && value.search(pattern) >= 0;
  if (isSchema(pattern)) return accepts(pattern, value);
  return pattern.asymmetricMatch(value);
}

function contains(expected: unknown, value: unknown): boolean {
  if (expected instanceof RegExp || isSchema(expected) || isAsymmetric(expected))
    return matches(expected, value);
  if (Array.isArray(expected)) {
    if (!Array.isArray(value) || value.length !== expected.length) return false;
    return expected.every((item, at) => contains(item, value[at]));
  }
  if (isPlain(expected)) {
    if (typeof value !== 'object' || value === null) return false;
    const fields = value as Record<string, unknown>;
    return Object.entries(expected).every(([name, item]) => contains(item, fields[name]));
  }
  return Object.is(expected, value);
}

/** The schemas of some libraries are functions. */
function isSchema(pattern: unknown): pattern is StandardSchema {
  return '~standard' in Object(pattern);
}

function isAsymmetric(pattern: unknown): pattern is Asymmetric {
  return typeof (pattern as Partial<Asymmetric> | null)?.asymmetricMatch === 'function';
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return !(value instanceof RegExp) && !isSchema(value) && !isAsymmetric(value);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    // Most texts are not JSON.
    return undefined;
  }
}
