import type { Point } from './measure.ts';

/** What `npm run bench:scale -- --measure` counted. Parts that take nothing are left out. `test/scale.test.ts` counts again. */
export const MEASURED: Record<'mongodb' | 'sqlite', Point> = {
  mongodb: {
    perConversation: {
      events: { documents: 2, bytes: 1_076, entries: 4 },
      actors: { documents: 1, bytes: 242, entries: 1 },
      conversations: { documents: 1, bytes: 76, entries: 9 },
    },
    perTurn: {
      events: { documents: 4, bytes: 1_832, entries: 9 },
      'registers (prompt)': { documents: 1, bytes: 1_489, entries: 3 },
    },
    commandsPerTurn: 10,
  },
  sqlite: {
    perConversation: {
      logs: { documents: 1, bytes: 89, entries: 0 },
      events: { documents: 2, bytes: 914, entries: 0 },
      pending: { documents: 1, bytes: 17, entries: 0 },
      actors: { documents: 1, bytes: 183, entries: 0 },
    },
    perTurn: {
      events: { documents: 4, bytes: 1_485, entries: 0 },
      registers: { documents: 1, bytes: 1_466, entries: 0 },
    },
    commandsPerTurn: 0,
  },
};

/** Memory of a look at everything: 200,000 and 400,000 agents with nothing to do, on a heap that is collected on the way. */
export const LOOK_BYTES = 10_800_000;
