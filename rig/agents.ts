import * as z from 'zod';
import { DEFAULT_LIMITS } from '../src/actors/actor/engine-deps.ts';
import { defineTool, defineTroupe } from '../src/index.ts';

/**
 * The company of the kill rig. It calls only servers of the rig: `RIG_MODEL_URL`, `RIG_TOOLS_URL`. Requests carry the
 * name of their process (`RIG_PROCESS`), so that the rig knows whose work a kill broke off.
 */
export const AGENT_IDS = ['ada', 'bo', 'cy'] as const;
export const LEASE_MS = 2_000;

const { RIG_MODEL_URL = 'http://127.0.0.1:1/v1', RIG_TOOLS_URL = 'http://127.0.0.1:1' } = process.env;

async function call(tool: string, effect: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(`${RIG_TOOLS_URL}/${tool}`, {
    method: 'POST',
    headers: { 'x-effect': effect, 'x-process': process.env['RIG_PROCESS'] ?? 'unknown' },
    signal,
  });
  if (!response.ok) throw new Error(`the tool server answered ${response.status}`);
  return response.text();
}

const book = defineTool({
  name: 'book',
  description: 'Books a seat. Booking twice would be wrong.',
  schema: z.object({}),
  run: (_, { effect, signal }) => call('book', effect, signal),
});

const look = defineTool({
  name: 'look',
  description: 'Looks at the free seats.',
  schema: z.object({}),
  idempotent: true,
  run: (_, { effect, signal }) => call('look', effect, signal),
});

// A turn may be killed any number of times; none is poison.
Object.assign(DEFAULT_LIMITS, { maxAttempts: 1_000, maxHops: 3 });

export const troupe = defineTroupe({
  agents: AGENT_IDS.map((id) => ({
    id,
    provider: 'openai-compatible' as const,
    model: `model-of-${id}`,
    baseUrl: RIG_MODEL_URL,
    apiKeyEnv: 'RIG_PROCESS',
    instructions: 'You book seats.',
    tools: ['book', 'look', 'handoff'],
  })),
  tools: [book, look],
  // All clients are one caller and one author here.
  access: { limits: 5_000 },
  limits: { leaseMs: LEASE_MS },
});
