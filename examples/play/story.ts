import type { Author, Event, NewMessage, TaskInfo } from '../../src/index.ts';

export interface Story {
  /** Where it takes place. */
  conversation: string;
  /** Answers and decides where nobody is at the keyboard. */
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

/** What a story does, and what it sees of it. */
export interface Stage {
  /** Of the conversation and all of its threads, as they came. */
  readonly events: readonly Event[];
  /** Says something and waits until all agents rest. */
  readonly say: (message: NewMessage) => Promise<void>;
  /** Lets people answer and decide whatever agents wait for, until they wait for nobody. */
  readonly answer: () => Promise<void>;
  /** Lets time go by, and waits for what an agent wanted to be reminded of. */
  readonly pass: (minutes: number) => Promise<void>;
  /** States what was shown, or ends the story if it is not so. */
  readonly claim: (what: string, holds: boolean) => void;
}
