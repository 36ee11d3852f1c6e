import type { Author, NewAttachment } from './troupe.ts';
import type { UserMove } from './user.ts';

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
