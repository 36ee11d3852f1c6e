import { type ReplyLimits, TroupeError } from '../troupe.ts';
import type { AgentSdk } from './agent-sdk.ts';
import { type CliProcess, startProcess } from './cli-process.ts';
import { type ClaudeCodeSettings, type Launch, launchOptions, type SessionStart } from './launch.ts';
import { createToolServer } from './tool-server.ts';

interface ProcessesOptions {
  loadSdk: () => Promise<AgentSdk>;
  settings: ClaudeCodeSettings;
  startTimeoutMs: number;
  limits: ReplyLimits;
}

/** All running processes of one provider. */
export interface Processes {
  readonly count: number;
  /** Throws `provider_unusable`. */
  start(launch: Launch, session: SessionStart, cacheKey: string): Promise<CliProcess>;
  /** Ends all processes, and all that start later. */
  close(): Promise<void>;
}

export function createProcesses(parts: ProcessesOptions): Processes {
  const { loadSdk, settings, startTimeoutMs, limits } = parts;
  const running = new Set<CliProcess>();
  let closed = false;
  return {
    get count() {
      return running.size;
    },
    async start(launch, session, cacheKey) {
      const sdk = await loadSdk();
      const tools = createToolServer(launch.tools);
      if (closed) throw new TroupeError('provider_unusable', 'the claude-code provider is closed');
      try {
        const options = launchOptions(settings, { launch, session, cacheKey });
        const process = startProcess({ sdk, tools, options, startTimeoutMs, limits });
        running.add(process);
        void process.exited.then(() => running.delete(process));
        return process;
      } catch (cause) {
        const reason = cause instanceof Error ? cause.message : String(cause);
        const message = `Claude Code (@anthropic-ai/claude-agent-sdk ${sdk.version}) cannot be started: ${reason}`;
        throw new TroupeError('provider_unusable', message, { version: sdk.version }, { cause });
      }
    },
    async close() {
      closed = true;
      await Promise.all([...running].map((process) => process.stop()));
    },
  };
}
