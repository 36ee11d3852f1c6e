/** The packages of the peers. Those of npm have their lockfile in this folder, those of PyPI their versions here. */
export const HOME = import.meta.dirname;

/** From npm: the package whose version stands for the peer. */
export const NPM = {
  'openai-agents-js': '@openai/agents',
  'langgraph-js': '@langchain/langgraph',
  'ai-sdk': 'ai',
  mastra: '@mastra/core',
  voltagent: '@voltagent/core',
} as const;

/** From PyPI, with their own stores on SQLite. */
export const PYTHON = {
  'openai-agents': { name: 'openai-agents', label: 'openai-agents', version: '0.24.0' },
  langgraph: {
    name: 'langgraph-checkpoint-sqlite',
    label: 'langgraph-sqlite',
    version: '3.1.2',
    // It needs the core only.
    beside: ['langgraph==1.2.24'],
  },
} as const;
