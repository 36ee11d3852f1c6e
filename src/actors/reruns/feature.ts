import type { Feature } from '../feature.ts';
import { rerunTurn } from './rerun-turn.ts';
import { readRerun } from './run-again.ts';

export const reruns: Feature = {
  open: () => ({ reruns: { begin: readRerun } }),
  commands: { rerun: rerunTurn },
};
