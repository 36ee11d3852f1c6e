import type { Author, Event, NewAttachment, Wait } from './troupe.ts';
import type { TroupeSettings } from './company.ts';
import type { RunUser } from './conversation-run.ts';

/**
 * Plays the people of a conversation. Scripts implement it, and so may a model with a goal, or a recording. It is asked for a
 * move whenever all agents are at rest, and only then. `next` must depend only on its argument and on the user's own start, so
 * that a run can be repeated.
 */
export interface User {
  /** Name in reports. */
  readonly name: string;
  /** The next move. An error that it throws ends the run. */
  next(seen: Seen): UserMove | Promise<UserMove>;
  /**
   * The outcome and cost of the user, for `users` of the run. Called once, after the last move or when the run is broken off;
   * it also frees what the user holds. Default: none.
   */
  end?(): Promise<RunUser>;
}

/** Makes the user of one run. Runs share nothing. */
export type NewUser = (start: UserStart) => User;

/** What a user gets when a run begins. */
export interface UserStart {
  /** Number of the run, from 1. All randomness of a user follows from it. */
  seed: number;
  /** Id of the conversation. Default `conversation`. */
  conversation?: string | undefined;
  /** Options of the run's `createTroupe`. A user that asks a model records and replays as they say. Default: none. */
  troupe?: TroupeSettings | undefined;
}

/** What people can see. */
export interface Seen {
  /** All events so far, including those of threads, in the order in which they came. */
  events: readonly Event[];
  /** The events since this user's last move. */
  news: readonly Event[];
  /** The last text of an agent. Empty: none has spoken. */
  said: string;
  /** Questions and approvals that wait for people, including those of threads, oldest first. */
  waits: readonly Wait[];
  /** Minutes since the beginning, on the conversation's clock. */
  minutes: number;
}

/** One move. Plain data, so that a recording can hold it. */
export type UserMove =
  | {
      readonly move: 'say';
      /** Who speaks. */
      readonly by: Author;
      /** The text. */
      readonly content: string;
      /** Ids of agents. Default: the company's routing decides. */
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
      /** A part of the question's text. Default: the oldest question that this person may answer. */
      readonly question?: string | undefined;
    }
  | {
      readonly move: 'approve' | 'deny';
      /** Who decides. */
      readonly by: Author;
      /** Name of the tool. Default: the oldest request that this person may decide. */
      readonly tool?: string | undefined;
      /** Reason of the decision. Default: none. */
      readonly note?: string | undefined;
    }
  | {
      readonly move: 'wait';
      /** Lets this many minutes pass if nobody else moves. Default: waits for others. */
      readonly minutes?: number | undefined;
    }
  | {
      /** The user makes no further move. */
      readonly move: 'done';
    }
  | {
      /** The run cannot continue: it is impossible. */
      readonly move: 'stop';
      /** Why. */
      readonly why: string;
    };

/** A person in a script. */
export interface Person extends Author {
  kind: 'user';
  /** Sends a message. `to`: ids of agents; default: the company's routing decides. */
  says(
    content: string,
    options?: { to?: readonly string[]; attachments?: readonly NewAttachment[] },
  ): UserMove;
  /** Answers an agent's question. `question`: a part of its text; default: the oldest that this person may answer. */
  answers(content: string, options?: { question?: string }): UserMove;
  /** Approves a call. Default: the oldest that this person may decide. */
  approves(tool?: string, options?: { note?: string }): UserMove;
  /** Denies a call. Default: the oldest that this person may decide. */
  denies(tool?: string, options?: { note?: string }): UserMove;
}

/** A person with an id and a name. Default name: the id with a capital first letter. */
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

/** Lets time pass: deadlines expire and reminders come, one after another. */
export function minutesPass(minutes: number): UserMove {
  return { move: 'wait', minutes };
}

/** A step of a script: a text of the user `User`, a move, or a function that decides from what was seen. */
export type Step = string | UserMove | ((seen: Seen) => readonly Step[] | Step | undefined);

const SOMEBODY = person('user');

/**
 * A user that follows a script, one step whenever all agents are at rest. A function is called once the steps before it are
 * done, and its own steps replace it: that is a branch.
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

/** A branch: the first steps if the last text of an agent, or an open question, matches; otherwise the second ones. */
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
