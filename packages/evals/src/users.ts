import type { Author, Event, NewAttachment, Wait } from './troupe.ts';
import type { TroupeSettings } from './company.ts';
import type { RunUser } from './conversation-run.ts';

/**
 * Plays the people of a conversation. Scripts implement it, and so may a model with a goal, or a recording. It is asked for
 * a move whenever all agents are at rest, and only then. `next` must depend on what it is given and on its own start alone,
 * so that a run can be repeated.
 */
export interface User {
  /** Name in reports. */
  readonly name: string;
  /** The next move. What it throws ends the run. */
  next(seen: Seen): UserMove | Promise<UserMove>;
  /**
   * What the user has come to and what it took, for `users` of the run. Called once, after the last move or when the run is
   * broken off: it also frees what the user holds. Default: nothing is told.
   */
  end?(): Promise<RunUser>;
}

/** Makes the user of one run. Runs share nothing. */
export type NewUser = (start: UserStart) => User;

/** What a user is given when a run begins. */
export interface UserStart {
  /** Number of the run, from 1. All randomness of a user follows from it. */
  seed: number;
  /** Id of the conversation. Default `conversation`. */
  conversation?: string | undefined;
  /** Options of `createTroupe` of the run: what asks a model records and replays as they say. Default: none. */
  troupe?: TroupeSettings | undefined;
}

/** What people can see. */
export interface Seen {
  /** All events so far, of threads too, in the order in which they came. */
  events: readonly Event[];
  /** Those since the last move of this user. */
  news: readonly Event[];
  /** The last words of an agent. Empty: none has spoken. */
  said: string;
  /** Questions and approvals that wait for people, of threads too, the oldest first. */
  waits: readonly Wait[];
  /** Minutes since the beginning, on the clock of the conversation. */
  minutes: number;
}

/** One move. Plain data, so that a recording can hold it. */
export type UserMove =
  | {
      readonly move: 'say';
      /** Who speaks. */
      readonly by: Author;
      /** The words. */
      readonly content: string;
      /** Ids of agents. Default: whoever the company's routing finds. */
      readonly to?: readonly string[] | undefined;
      /** Files and images. Default: none. */
      readonly attachments?: readonly NewAttachment[] | undefined;
    }
  | {
      readonly move: 'answer';
      /** Who answers. */
      readonly by: Author;
      /** The answer. */
      readonly content: string;
      /** A part of the question. Default: the oldest one that this person may answer. */
      readonly question?: string | undefined;
    }
  | {
      readonly move: 'approve' | 'deny';
      /** Who decides. */
      readonly by: Author;
      /** Name of the tool. Default: the oldest request that this person may decide. */
      readonly tool?: string | undefined;
      /** Why. Default: nothing is said. */
      readonly note?: string | undefined;
    }
  | {
      readonly move: 'wait';
      /** Lets so much time pass if nobody else moves. Default: waits for others. */
      readonly minutes?: number | undefined;
    }
  | {
      /** Nothing more comes of this user. */
      readonly move: 'done';
    }
  | {
      /** The run cannot go on: it is impossible. */
      readonly move: 'stop';
      /** Why. */
      readonly why: string;
    };

/** Somebody in a script. */
export interface Person extends Author {
  kind: 'user';
  /** Sends a message. `to`: ids of agents; default: whoever the company's routing finds. */
  says(
    content: string,
    options?: { to?: readonly string[]; attachments?: readonly NewAttachment[] },
  ): UserMove;
  /** Answers a question of an agent. `question`: a part of it; default: the oldest that this person may answer. */
  answers(content: string, options?: { question?: string }): UserMove;
  /** Approves a call. Default: the oldest that this person may decide. */
  approves(tool?: string, options?: { note?: string }): UserMove;
  /** Denies a call. Default: the oldest that this person may decide. */
  denies(tool?: string, options?: { note?: string }): UserMove;
}

/** Somebody with an id and a name. Default name: the id with a capital. */
export function person(id: string, name = id.charAt(0).toUpperCase() + id.slice(1)): Person {
  const by: Author = { kind: 'user', id, name };
  return {
    kind: 'user',
    id,
    name,
    says: (content, options) => ({ move: 'say', by, content, ...options }),
    answers: (content, options) => ({ move: 'answer', by, content, ...options }),
    approves: (tool, options) => ({ move: 'approve', by, tool, ...options }),
    denies: (tool, options) => ({ move: 'deny', by, tool, ...options }),
  };
}

/** Time passes: deadlines end and reminders come, one after the other. */
export function minutesPass(minutes: number): UserMove {
  return { move: 'wait', minutes };
}

/** A step of a script: words of the user `User`, a move, or what is decided by what was seen. */
export type Step = string | UserMove | ((seen: Seen) => readonly Step[] | Step | undefined);

const SOMEBODY = person('user');

/**
 * A user that follows a script, one step whenever all agents are at rest. A step that is a function is asked once the steps
 * before it are done, and its own steps come in its place: that is a branch.
 *
 *     scriptedUser([mia.says('Where is my parcel?'), when(/number/, [mia.says('4711')])])
 */
export function scriptedUser(steps: readonly Step[], name = 'the script'): NewUser {
  return () => {
    const left = [...steps];
    return {
      name,
      next(seen) {
        for (let step = left.shift(); step !== undefined; step = left.shift()) {
          if (typeof step === 'string') return SOMEBODY.says(step);
          if (typeof step !== 'function') return step;
          left.unshift(...[step(seen) ?? []].flat());
        }
        return { move: 'done' };
      },
    };
  };
}

/** A branch: the first steps if the last words of an agent, or an open question, match; otherwise the second ones. */
export function when(
  heard: string | RegExp,
  steps: readonly Step[],
  otherwise: readonly Step[] = [],
): (seen: Seen) => readonly Step[] {
  return ({ said, waits }) => {
    const heardWords = [said, ...waits.map(({ task }) => task.text ?? task.tool ?? '')];
    const isHeard = (words: string) =>
      typeof heard === 'string' ? words.includes(heard) : words.search(heard) >= 0;
    return heardWords.some(isHeard) ? steps : otherwise;
  };
}
