import type { Event } from './troupe.ts';
import type { ConversationRun, RunPrompt, RunTurn } from './conversation-run.ts';
import { eventWords } from './event-words.ts';
import { type Moment, momentOf } from './moment.ts';
import { isWhat, isWho, patternWords, type What, type Who, whoWords } from './pattern.ts';

/** What woke an agent. */
export interface Cause {
  /** Who: an agent, a person, or `troupe` for reminders and schedules. Default: anybody. */
  by?: Who | undefined;
  /** With which words. Default: any. */
  with?: What | undefined;
}

/** An agent began a turn, because of something that addressed it. */
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

/** What a model was sent contains it: instructions, history and descriptions of tools. */
export function told(agent: Who, what: What): Moment {
  const words = `${whoWords(agent)} is told ${patternWords(what)}`;
  return turnMoment(words, agent, ({ prompts }) =>
    prompts.some((prompt) => partsOf(prompt).some((part) => isWhat(what, part))),
  );
}

/** A turn gave no answer. */
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

/** A guard stopped an agent: `hops`, `cycle`, `repeats`, `budget` and the others of docs/coordination.md. */
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

/** A guard writes as the system in the turn that it stops. */
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
