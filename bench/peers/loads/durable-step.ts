import type { Load } from './load.ts';

/**
 * The load of https://github.com/mastra-ai/mastra/issues/21289: a turn of nine steps of an agent with dozens of tools and
 * 25,000 to 50,000 tokens in each prompt; the time from the end of a model call to the start of the next.
 */
export const DURABLE_STEP: Load = {
  name: 'durable-step',
  title: 'a turn of 9 steps',
  size: 9,
  short: 3,
  contenders: [
    { name: 'troupe', script: 'durable-step/troupe.ts', needs: 'troupe' },
    {
      name: 'mastra, durable with recovery',
      script: 'durable-step/mastra.mjs',
      mode: 'recovery',
      needs: 'mastra',
    },
    { name: 'mastra, durable', script: 'durable-step/mastra.mjs', mode: 'durable', needs: 'mastra' },
    { name: 'mastra, not durable', script: 'durable-step/mastra.mjs', mode: 'plain', needs: 'mastra' },
  ],
  figures: [
    {
      key: 'gapMs',
      title: 'between two model calls, ms',
      published: '6,000 to 18,000 with Redis and PostgreSQL; not durable 30',
    },
    { key: 'lastGapMs', title: 'before the last model call, ms' },
    { key: 'cpuMs', title: 'CPU of a step, ms' },
  ],
};
