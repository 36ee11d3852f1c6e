import type { Load } from './load.ts';

/** Trajectories of tau-bench (https://github.com/sierra-research/tau-bench), played again with their answers and tool results. */
export const TAU: Load = {
  name: 'tau',
  title: 'tau-bench trajectories',
  size: 1_000,
  short: 2,
  needsData: true,
  contenders: [
    { name: 'troupe', script: 'tau/troupe.ts', mode: 'one', needs: 'troupe' },
    { name: 'troupe, three agents', script: 'tau/troupe.ts', mode: 'three', needs: 'nothing' },
    { name: 'bare loop', script: 'tau/bare-loop.ts', needs: 'nothing' },
  ],
  figures: [
    { key: 'trajectories', title: 'trajectories played' },
    { key: 'calls', title: 'model calls' },
    { key: 'events', title: 'events checked for invariants' },
    { key: 'violations', title: 'violations' },
    { key: 'verified', title: 'prompts that the log gives again byte for byte, %' },
    { key: 'kiloTokens', title: 'prompt tokens, thousand' },
    { key: 'cachedShare', title: 'of them read from the cache, %' },
    { key: 'dollars', title: 'US dollars with the cache' },
    { key: 'dollarsUncached', title: 'US dollars without' },
  ],
};
