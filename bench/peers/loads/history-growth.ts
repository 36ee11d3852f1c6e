import type { Load } from './load.ts';

/**
 * The load of https://github.com/temporalio/sdk-python/issues/1890: 100 model calls in one run, each with a tool result of
 * 5 KB, behind a conversation of 209,000 tokens. Temporal ends a run whose history has 50 MB or 51,200 events.
 */
export const HISTORY_GROWTH: Load = {
  name: 'history-growth',
  title: '100 model calls in a turn',
  size: 100,
  short: 5,
  contenders: [
    { name: 'troupe', script: 'history-growth/troupe.ts', needs: 'troupe' },
    { name: 'temporal', script: 'history-growth/runs.py', needs: 'temporal' },
  ],
  figures: [
    { key: 'calls', title: 'model calls reached', published: '53, then the run was ended' },
    { key: 'storedMb', title: 'stored by the run, MB', published: '50.5' },
    { key: 'sentMb', title: 'sent to the model, MB' },
    { key: 'seconds', title: 'time, s' },
    { key: 'cpuSeconds', title: 'CPU, s' },
  ],
};
