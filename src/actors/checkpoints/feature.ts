import type { Feature } from '../feature.ts';
import type { Checkpoints } from '../log/checkpoints.ts';
import type { CheckpointsFeature } from '../turn/turn-run.ts';
import { copyFolds, isAtRest, isWorthStoring, restoreFolds, storeFolds } from './actor-checkpoint.ts';
import { createCheckpoints } from './checkpoints.ts';

export const checkpoints: Feature = {
  open({ foldEvery, ...parts }) {
    const folds = createCheckpoints({ ...parts, ...(foldEvery !== undefined && { least: foldEvery }) });
    return { checkpoints: hooksOf(folds) };
  },
};

function hooksOf(folds: Checkpoints): CheckpointsFeature {
  const { least } = folds;
  return {
    folds,
    isWorthStoring: (live) => isWorthStoring(live, { least }),
    async keep(live, { isBusy }) {
      if (!isAtRest(live.view) || !isWorthStoring(live, { least, isBusy })) return null;
      const copy = copyFolds(live);
      // Read under the lease, so that the conversation is not deleted meanwhile.
      const place = await folds.mark(live.address, live.view.upTo);
      return () => {
        if (place) live.stored = storeFolds(folds, live.address, copy, place);
      };
    },
    restore: (address, options) => restoreFolds(folds, address, options),
    close: () => folds.flush(),
  };
}
