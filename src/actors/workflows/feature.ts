import type { Feature } from '../feature.ts';
import { advanceRuns } from './advance-runs.ts';
import { changePhase } from './change-phase.ts';
import { startRun } from './start-run.ts';

export const workflows: Feature = {
  open: () => ({ workflows: { advance: advanceRuns } }),
  commands: { phase: changePhase, run: startRun },
};
