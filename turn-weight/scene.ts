import type { Author, Clock, Troupe, TroupeInput } from '../src/index.ts';

/** What is weighed: one kind of turn, asked for and waited for in one way. */
export interface Scene {
  name: string;
  company: TroupeInput;
  open(stage: Stage): Promise<Door>;
}

export interface Stage {
  troupe: Troupe;
  clock: Clock;
}

/** A way into the company. */
export interface Door {
  enter(conversation: string): Promise<Room>;
  close?(): Promise<void>;
}

export interface Room {
  /** Asks, and resolves when the turn has ended for the one who asked. */
  turn(text: string): Promise<void>;
  leave?(): Promise<void>;
}

export const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };

/** An agent that says `Understood, and noted.`, in pieces of `chunk` characters, and first calls a tool if one is given. */
export function agentWith(
  id: string,
  { call, chunk = 0 }: { call?: { name: string; args: object }; chunk?: number } = {},
): TroupeInput['agents'][number] {
  const rules = [
    ...(call ? [{ when: { step: 1, contains: 'please' }, reply: '', calls: [call] }] : []),
    { reply: 'Understood, and noted.', chunk },
  ];
  return {
    id,
    provider: 'scripted',
    model: 'test',
    contextWindow: 1_000_000,
    ...(call && { tools: [call.name] }),
    script: { rules },
  };
}
