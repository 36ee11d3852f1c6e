import type { Feature } from '../feature.ts';
import { refuseBusy, turnToInterrupt } from './busy-policy.ts';
import { isInterrupted } from './look-beyond.ts';
import { showAllSteered, showSteered, steerTurn } from './steer-turn.ts';

export const steering: Feature = {
  open: () => ({
    steering: {
      steer: steerTurn,
      showSteered: (run, steps) => (steps === 'all' ? showAllSteered(run) : showSteered(run)),
      isInterrupted,
      turnToInterrupt,
      refuseBusy,
    },
  }),
};
