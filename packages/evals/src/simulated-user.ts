import type { UserOutcome } from './conversation-run.ts';
import { askedLines, askedOf, newsFor } from './person-view.ts';
import { eventWords } from './event-words.ts';
import { readMove } from './move-reply.ts';
import { isWhat } from './pattern.ts';
import { clip } from './show-run.ts';
import { type PlayedPerson, playedPerson, type SimulatedUserSettings } from './simulated-user-settings.ts';
import { openSimulation } from './simulation.ts';
import type { NewUser, Seen, User, UserMove, UserStart } from './user.ts';

/**
 * A person played by a model. It sees what this person would see: the words of people and agents, and what is asked of it;
 * no calls and no results of tools. It plays until its goal is reached or it gives up. Its calls are recorded and replayed with
 * those of the company, and counted apart from them, in `users` of the run. Throws `config_invalid`; what is wrong with the model
 * is thrown when the run begins.
 *
 *     simulatedUser({
 *       person: person('mia'),
 *       goal: 'Know when parcel 4711 arrives.',
 *       persona: 'In a hurry. The number of the parcel is 4711.',
 *       model: { provider: 'anthropic', model: 'claude-sonnet-5' },
 *     })
 */
export function simulatedUser(settings: SimulatedUserSettings): NewUser {
  const played = playedPerson(settings);
  return (start) => playPerson(played, start);
}

function playPerson(settings: PlayedPerson, start: UserStart): User {
  const { person, goal, until, to, maxMoves, waitMinutes } = settings;
  const simulation = openSimulation(settings, start);
  /** Words of its own that it has not yet seen in the log. */
  const own: string[] = [];
  let outcome: UserOutcome = { kind: 'open', why: 'the run was over before' };
  let moves = 0;
  let minutes = 0;

  function situation(seen: Seen): string {
    const passed = Math.round(seen.minutes - minutes);
    minutes = seen.minutes;
    const news = newsFor(person, seen, own);
    const asked = askedLines(askedOf(seen.waits, person));
    return [
      ...(passed > 0 ? [`${passed} minutes have passed.`] : []),
      ...(news.length > 0 ? ['What is new:', ...news] : [NOTHING[seen.events.length > 0 ? 'new' : 'yet']]),
      ...(asked.length > 0 ? ['What you are asked:', ...asked] : []),
      `You are ${person.name}, and want: ${goal.trim()}`,
      seen.events.length > 0 && until === undefined ? LATER : 'What is your move?',
    ].join('\n');
  }

  function stop(why: string): UserMove {
    outcome = { kind: 'stopped', why };
    return { move: 'stop', why };
  }

  function perform(move: UserMove): UserMove {
    moves += 1;
    if (move.move === 'wait') return { move: 'wait', minutes: waitMinutes };
    if (move.move !== 'say') return move;
    own.push(move.content);
    return { ...move, to };
  }

  return {
    name: `${person.name} (simulated)`,
    async next(seen) {
      if (until !== undefined && hasHappened(until, seen)) {
        outcome = {
          kind: 'reached',
          why: typeof until === 'function' ? 'until holds' : `an agent said ${until}`,
        };
        return { move: 'done' };
      }
      if (moves >= maxMoves) {
        outcome = { kind: 'stopped', why: `it has made ${moves} moves` };
        return { move: 'done' };
      }
      const asked = askedOf(seen.waits, person);
      let words = situation(seen);
      // What is wrong is said once.
      for (let isLast = false; ; isLast = true) {
        const reply = await simulation.ask(words);
        if (reply.kind === 'failed') return stop(`its model failed: ${reply.why}`);
        const read = readMove(reply.data, person, asked, settings.may);
        if (read.kind === 'move') return perform(read.move);
        if (read.kind === 'end') {
          outcome = read.outcome;
          return { move: 'done' };
        }
        if (isLast)
          return stop(`its model made no move, and was told: ${read.problem}. It wrote: ${clip(reply.text)}`);
        words = `That is no move: ${read.problem}. Answer with one move.`;
      }
    },
    async end() {
      return { id: person.id, name: person.name, outcome, moves, ...(await simulation.close()) };
    },
  };
}

function hasHappened(until: NonNullable<PlayedPerson['until']>, seen: Seen): boolean {
  if (typeof until === 'function') return until(seen);
  return seen.events.some(
    (event) => event.kind === 'message' && event.author.kind === 'agent' && isWhat(until, eventWords(event)),
  );
}

/** Small models go on for ever unless they are asked. */
const LATER = 'If you have that now, do not say so: leave. Otherwise, what is your move?';
const NOTHING = {
  yet: 'Nobody has said anything yet: you speak first.',
  new: 'Nobody has said anything since.',
};
