import * as z from 'zod';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import { createMetrics } from '../../src/http/metrics.ts';
import type { LogCode, LogFacts, Logger, LogIds, LogLevel } from '../../src/base/logger.ts';
import { createTroupe, type TroupeOptions } from '../../src/library/runtime/create-troupe.ts';
import { startFakeOpenAi, type FakeHandler } from '../../packages/testing/src/fake-vendors.ts';
import { defineTool } from '../../src/tools/tool.ts';
import type { Event } from '../../src/events/index.ts';

export const ANA = { kind: 'user', id: 'u1', name: 'Ana' } as const;
/** Looks like no key, so only a known value can be hidden. */
export const API_KEY = 'canary-of-the-vendor';

export interface Line extends LogIds, LogFacts {
  level: LogLevel;
  code: LogCode;
}

export function keepLines(level: LogLevel = 'debug'): { logger: Logger; lines: Line[] } {
  const order: LogLevel[] = ['error', 'warn', 'info', 'debug'];
  const lines: Line[] = [];
  return {
    lines,
    logger: {
      isOn: (asked) => order.indexOf(asked) <= order.indexOf(level),
      write: (at, code, ids, facts) => void lines.push({ level: at, code, ...ids, ...facts }),
    },
  };
}

const look = defineTool({
  name: 'look',
  description: 'looks',
  schema: z.object({ at: z.string() }),
  run: ({ at }) => (at === 'nothing' ? Promise.reject(new Error('nothing is there')) : `saw ${at}`),
});

/** One agent, `bo`, on a fake vendor over HTTP. */
export async function startVendor(
  handler: FakeHandler,
  options: TroupeOptions = {},
  more: { model?: string } & Partial<TroupeInput> = {},
) {
  const { model = 'gpt-5', ...input } = more;
  const server = await startFakeOpenAi(handler);
  const metrics = createMetrics({ version: '1' });
  const agent = {
    id: 'bo',
    name: 'Bo',
    provider: 'openai-compatible' as const,
    model,
    baseUrl: server.url,
    apiKeyEnv: 'VENDOR_KEY',
    tools: ['look'],
  } satisfies AgentInput;
  const troupe = await createTroupe({ agents: [agent], tools: [look], ...input } as TroupeInput, {
    env: { VENDOR_KEY: API_KEY },
    metrics,
    onWarning: () => {},
    ...options,
  });
  return {
    server,
    troupe,
    metrics,
    /** The page of metrics. */
    page: () => metrics.text(troupe),
    /** Sends it to bo, and waits until all work is done. Returns the log. */
    async say(content: string, conversation = 'c1'): Promise<Event[]> {
      await troupe.send(conversation, { author: ANA, to: ['bo'], content });
      await troupe.idle();
      return (await troupe.events(conversation)).events;
    },
    async [Symbol.asyncDispose]() {
      await troupe.close();
      await server.close();
    },
  };
}

/** Value of the series that starts like this; null if there is none. */
export function valueOf(page: string, series: string): number | null {
  const line = page.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? null : Number(line.slice(series.length + 1));
}
