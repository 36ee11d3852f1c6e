import type { Author, Event, NewMessage, TaskInfo } from '../../src/index.ts';

export interface Story {
  /** The conversation in which the story takes place. */
  conversation: string;
  /** Answer and decide when nobody is at the keyboard. */
  people: People;
  play(stage: Stage): Promise<void>;
}

export interface People {
  answer(question: TaskInfo): Said | Promise<Said>;
  decide(request: TaskInfo): Decided | Promise<Decided>;
}

interface Said {
  by: Author;
  content: string;
}

interface Decided {
  by: Author;
  approved: boolean;
  note?: string | undefined;
}

/** What a story can do and see. */
export interface Stage {
  /** Events of the conversation and all its threads, in the order of arrival. */
  readonly events: readonly Event[];
  /** Sends a message and waits until all agents are at rest. */
  readonly say: (message: NewMessage) => Promise<void>;
  /** Lets people answer and decide until no agent waits for them. */
  readonly answer: () => Promise<void>;
  /** Lets time pass, and waits for the reminders that become due. */
  readonly pass: (minutes: number) => Promise<void>;
  /** States what was shown; ends the story if it does not hold. */
  readonly claim: (what: string, holds: boolean) => void;
}
