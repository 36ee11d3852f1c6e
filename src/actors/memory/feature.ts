import type { Feature } from '../feature.ts';
import { createMemorySearch } from './memory-search.ts';
import { retrieveMemories } from './retrieve-memories.ts';

export const memory: Feature = {
  open({ embedder = null, clock, onWarning, deadlineMs, firstDeadlineMs }) {
    const search = createMemorySearch({
      embedder,
      clock,
      onWarning,
      ...(deadlineMs !== undefined && { deadlineMs }),
      ...(firstDeadlineMs !== undefined && { firstDeadlineMs }),
    });
    return {
      memory: {
        retrieve: (deps, turn) => retrieveMemories(deps, search, turn),
        async close() {
          await search[Symbol.asyncDispose]();
        },
      },
    };
  },
};
