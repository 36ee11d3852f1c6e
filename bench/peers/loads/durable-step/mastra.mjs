import { Agent } from '@mastra/core/agent';
import { createDurableAgent } from '@mastra/core/agent/durable';
import { Mastra } from '@mastra/core/mastra';
import { createTool } from '@mastra/core/tools';
import { LibSQLStore } from '@mastra/libsql';
import { Memory } from '@mastra/memory';
import { z } from 'zod';
import { cpuMs } from '../../measures.ts';
import { DESCRIPTION, FIELDS, gapClock, INSTRUCTIONS, resultOf, TOOL_NAMES, TURNS } from './agent.ts';

/**
 * Modes: `recovery`, a durable agent whose runs are stored at each step, so that another process can go on; `durable`, as
 * Mastra sets it up, which stores runs that wait for people; `plain`, no durable agent.
 */
const [, , mode, size = '0', dir = ''] = process.argv;
const steps = Number(size);
const gaps = gapClock();
const USAGE = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
const model = {
  specificationVersion: 'v2',
  provider: 'fake',
  modelId: 'fake',
  supportedUrls: {},
  doGenerate() {
    throw new Error('the load streams');
  },
  async doStream({ prompt }) {
    const call = prompt.filter(({ role }) => role === 'tool').length;
    gaps.starts(call);
    const isLast = call + 1 >= steps;
    const parts = [
      { type: 'stream-start', warnings: [] },
      ...(isLast
        ? [
            { type: 'text-start', id: '1' },
            { type: 'text-delta', id: '1', delta: 'Done.' },
            { type: 'text-end', id: '1' },
          ]
        : [
            {
              type: 'tool-call',
              toolCallId: `call-${call}`,
              toolName: TOOL_NAMES[(call + 1) % TOOL_NAMES.length],
              input: JSON.stringify({ order: `${call}` }),
            },
          ]),
      { type: 'finish', finishReason: isLast ? 'stop' : 'tool-calls', usage: USAGE },
    ];
    async function* told() {
      yield* parts;
      gaps.ends();
    }
    return { stream: ReadableStream.from(told()) };
  },
};
const inputSchema = z.object(Object.fromEntries(FIELDS.map((name) => [name, z.string().optional()])));
const tools = Object.fromEntries(
  TOOL_NAMES.map((id, index) => [
    id,
    createTool({ id, description: DESCRIPTION, inputSchema, execute: async () => resultOf(index) }),
  ]),
);
const storage = new LibSQLStore({ id: 'store', url: `file:${dir}/mastra.db` });
const memory = new Memory({
  storage,
  options: {
    lastMessages: 1_000_000,
    semanticRecall: false,
    workingMemory: { enabled: false },
    generateTitle: false,
  },
});
const plain = new Agent({ id: 'agent', name: 'agent', instructions: INSTRUCTIONS, model, tools, memory });
const agent = mode === 'plain' ? plain : createDurableAgent({ agent: plain, maxSteps: steps + 1 });
const recovery = mode === 'recovery' ? { recovery: { durableAgents: 'auto' } } : {};
const mastra = new Mastra({ agents: { agent }, storage, logger: false, ...recovery });
let calls = 0;

async function turn(thread) {
  const options = { memory: { thread, resource: 'ana' }, maxSteps: steps + 1 };
  const { fullStream, cleanup } = await mastra.getAgent('agent').stream('Go.', options);
  for await (const { type } of fullStream) if (type === 'step-finish') calls += 1;
  cleanup?.();
}

await turn('warm-up');
gaps.measure();
calls = 0;
const before = cpuMs();
for (let index = 0; index < TURNS; index++) await turn(`measured-${index}`);
const cpu = (cpuMs() - before) / (TURNS * steps);
if (calls !== TURNS * steps) throw new Error(`${calls} steps of ${TURNS * steps}`);
console.log(JSON.stringify({ ...gaps.figures(), cpuMs: cpu }));
process.exit(0);
