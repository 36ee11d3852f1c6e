import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import type { TroupeOptions } from '../../src/library/runtime/create-troupe.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { ROOM, UMA } from '../support/company.ts';
import { tempDir } from '../store/temp-dir.ts';

type McpServers = NonNullable<TroupeInput['mcpServers']>;
type StdioServer = Extract<McpServers[string], { command: string }>;

const SCRIPT = join(import.meta.dirname, '../support/mcp-server.ts');

export interface StdioStage {
  server(manner?: string): StdioServer;
  /** The servers' trace so far, without their pids. */
  trace(): string[];
  /** Pids of the started servers, in order. */
  pids(): number[];
}

/** MCP servers as processes that write a trace to a file. */
export function stdioStage(): StdioStage {
  const file = join(tempDir(), 'trace');
  const lines = () => (existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : []);
  const pids = () => lines().flatMap((line) => (line.startsWith('start ') ? [Number(line.slice(6))] : []));
  onTestFinished(() => {
    const left = pids().filter(isAlive);
    for (const pid of left) process.kill(pid, 'SIGKILL');
    if (left.length > 0) throw new Error(`left running: ${left.join(', ')}`);
  });
  return {
    server: (manner = '') => ({ command: process.execPath, args: [SCRIPT, file, manner] }),
    trace: () => lines().map((line) => line.replace(/^start .*/, 'start')),
    pids,
  };
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // An ended process stays in the list until its parent collects it. The first process of a container may never do
    // so.
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch (error) {
    // Without /proc, the process counts as alive.
    return (error as NodeJS.ErrnoException).code === 'ENOENT' && !existsSync('/proc');
  }
}

/** An agent that makes the call named by its message, and then says that it is done. */
export function caller(
  id: string,
  tools: string[],
  calls: Readonly<Record<string, [name: string, args?: unknown]>>,
): AgentInput {
  const rules = Object.entries(calls).map(([word, [name, args = {}]]) => ({
    when: { contains: word, step: 1 },
    calls: [{ name, args }],
  }));
  const script = { rules: [...rules, { reply: 'done' }] };
  return { id, provider: 'scripted', script, tools } as AgentInput;
}

export interface McpRoom extends AsyncDisposable {
  troupe: Troupe;
  warnings: string[];
  post(agent: string, content: string): Promise<unknown>;
  /** Sends a message to an agent, waits until all is quiet, and returns the result of the agent's call. */
  call(agent: string, word: string): Promise<{ outcome: string; content: string; artifact?: string }>;
}

export async function mcpRoom(input: TroupeInput, options: TroupeOptions = {}): Promise<McpRoom> {
  const warnings: string[] = [];
  const onWarning = (error: unknown, where: string) => warnings.push(`${where}: ${String(error)}`);
  const troupe = await createTroupe(input, { env: {}, onWarning, ...options });
  const post = (agent: string, content: string) => troupe.send(ROOM, { author: UMA, to: [agent], content });
  return {
    troupe,
    warnings,
    post,
    async call(agent, word) {
      await post(agent, word);
      await troupe.idle();
      const { events } = await troupe.events(ROOM);
      const last = events.findLast((event) => event.kind === 'tool.result');
      if (last?.kind !== 'tool.result') throw new Error('no tool was called');
      const { outcome, content, artifact } = last.body;
      return { outcome, content, ...(artifact !== undefined && { artifact }) };
    },
    [Symbol.asyncDispose]: () => troupe.close(),
  };
}
