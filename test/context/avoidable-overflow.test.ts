import { expect, test } from 'vitest';
import { playRound } from '../../score/fuzz-round.ts';
import { randomOf } from '../../sim/random.ts';

/** Small windows of `score:context -- --only fuzz`, seed 1, in which a large summary once took the room of the turn. */
test.each([115, 4_160, 4_498, 4_865, 5_308])(
  'a summary leaves room for what must be kept (random conversation %i)',
  (round) => {
    const { avoidable, problems } = playRound(randomOf(1, `round ${round}`));
    expect({ avoidable, problems }).toEqual({ avoidable: [], problems: [] });
  },
);
