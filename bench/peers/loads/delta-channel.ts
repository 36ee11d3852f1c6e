import type { Load } from './load.ts';

/**
 * The load of "Delta Channels" (https://www.langchain.com/blog/delta-channels-evolving-agent-runtime), whose sizes are in
 * https://github.com/langchain-ai/deepagents/pull/2910: per turn two files of 30 KB, a result of 4 KB and an answer of 20 KB,
 * and each tenth turn a result of 80 KB that becomes a file. Three agents take turns.
 */
export const DELTA_CHANNEL: Load = {
  name: 'delta-channel',
  title: '200 turns with files',
  size: 200,
  short: 4,
  contenders: [
    { name: 'troupe', script: 'delta-channel/troupe.ts', needs: 'troupe' },
    { name: 'langgraph', script: 'delta-channel/checkpoints.py', mode: 'full', needs: 'langgraph' },
    {
      name: 'langgraph with DeltaChannel',
      script: 'delta-channel/checkpoints.py',
      mode: 'delta',
      needs: 'langgraph',
    },
  ],
  figures: [
    { key: 'storedMb', title: 'stored, MB', published: '5,300; with DeltaChannel 129' },
    { key: 'seconds', title: 'time, s' },
    { key: 'cpuSeconds', title: 'CPU, s' },
    { key: 'resumeMs', title: 'a turn after reopening, ms' },
  ],
};
