import { type Author, type Tool, TroupeError } from './troupe.ts';
import type { ModelChoice } from './model-agent.ts';
import { ALL_MOVES, type MoveName, type Word } from './move-reply.ts';
import type { Seen } from './user.ts';

/** Settings of a simulated user. */
export interface SimulatedUserSettings {
  /** Whom the model plays: `person('mia')`. */
  person: Author;
  /** What the person wants to reach: it ends when that is reached, or cannot be. */
  goal: string;
  /**
   * When the goal is reached: an agent has said this, or what the function finds. Then it ends, and its model cannot end by leaving.
   * Default: its model decides that.
   */
  until?: string | RegExp | ((seen: Seen) => boolean) | undefined;
  /** Who the person is: what it knows, how it speaks. Default: nothing is said of that. */
  persona?: string | undefined;
  /** Its model: a provider with its fields, rules of a script, or a provider of your own. */
  model: ModelChoice;
  /** Tools that the person has, such as a look at its phone. The company does not see their calls. Default: none. */
  tools?: readonly Tool[] | undefined;
  /** Ids of the agents whom its words address. Default: whoever the company's routing finds. */
  to?: readonly string[] | undefined;
  /**
   * What it may do: small models do better with little. Without `until` it may always leave and give up. Default: all, which is to say,
   * answer, approve, deny, wait and give up.
   */
  moves?: readonly MoveName[] | undefined;
  /** Most moves, waits among them. Default 20. */
  maxMoves?: number | undefined;
  /** Most calls of the model for one move: each look at a tool is one. Default 10. */
  maxSteps?: number | undefined;
  /** Minutes that pass while it waits, unless another user moves before. Default 30. */
  waitMinutes?: number | undefined;
}

const DEFAULTS = { maxMoves: 20, maxSteps: 10, waitMinutes: 30 };
type Bounds = typeof DEFAULTS;

/** With the bounds that are given by default, and all that the model may write as a move. */
export type PlayedPerson = Omit<SimulatedUserSettings, keyof Bounds | 'moves'> &
  Bounds & { may: readonly Word[] };

/** Checks the settings. Throws `config_invalid`. */
export function playedPerson(settings: SimulatedUserSettings): PlayedPerson {
  const { person, goal, until, tools = [], moves = ALL_MOVES, ...rest } = settings;
  const { id, name } = Object(person) as Partial<Author>;
  if (typeof id !== 'string' || id === '' || typeof name !== 'string')
    throw invalid("a simulated user needs a person: { person: person('mia') }");
  const who = `the simulated user "${id}"`;
  if (typeof goal !== 'string' || goal.trim() === '') throw invalid(`${who} has no goal`);
  const twice = tools.find((tool, at) => tools.findIndex((each) => each.name === tool.name) !== at);
  if (twice) throw invalid(`${who} has two tools of the name "${twice.name}"`);
  const unknown = moves.find((move) => !ALL_MOVES.includes(move));
  if (unknown !== undefined)
    throw invalid(`moves of ${who} has "${unknown}"; there are ${ALL_MOVES.join(', ')}`);
  const bounds = { ...DEFAULTS };
  for (const field of Object.keys(DEFAULTS) as (keyof Bounds)[]) {
    const value = settings[field] ?? DEFAULTS[field];
    if (!Number.isInteger(value) || value < 1)
      throw invalid(`${field} of ${who} is ${value}, and has to be a whole number from 1 on`);
    bounds[field] = value;
  }
  const ends: readonly Word[] = until === undefined ? ['leave', 'give_up'] : [];
  const may: readonly Word[] = [...new Set<Word>([...moves, ...ends])];
  return { ...rest, ...bounds, goal, until, tools, may, person: { kind: 'user', id, name } };
}

function invalid(message: string): TroupeError {
  return new TroupeError('config_invalid', message);
}
