import { type ChildProcess, spawn } from 'node:child_process';
import { Transform } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import {
  type ReplyLimits,
  TroupeError,
  Cutter,
  replyTooLong,
  signalGroup,
  makePrivateDir,
  type ModelRequest,
  type SessionMark,
} from '../troupe.ts';
import type { AgentSdk, SdkChild, SdkMessage, SdkSpawn, SdkUserMessage, PromptBlock } from './agent-sdk.ts';
import { createToolServer, type ToolServer, TOOL_PREFIX } from './tool-server.ts';

interface ProcessesOptions {
  loadSdk: () => Promise<AgentSdk>;
  settings: ClaudeCodeSettings;
  startTimeoutMs: number;
  limits: ReplyLimits;
}

export interface Processes {
  readonly count: number;
  /** Throws `provider_unusable`. */
  start(launch: Launch, session: SessionStart, cacheKey: string): Promise<CliProcess>;
  /** Ends all processes, and any that start later. */
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

/** A running Claude Code process with one session. It stays open between turns. */
export interface CliProcess {
  readonly tools: ToolServer;
  /** False as soon as the process begins to end. */
  readonly isAlive: boolean;
  readonly exited: Promise<void>;
  /** Sends a user message, which begins a turn. */
  send(content: readonly PromptBlock[]): void;
  /** The next message; null after the end. */
  next(): Promise<SdkMessage | null>;
  /** Why the process ended, whether it had sent anything, and the limit that it exceeded, if any. */
  ending(): { spoke: boolean; words: string; excess: TroupeError | null };
  /** Ends the process within two seconds, whatever it does. Its current turn may or may not be in the session. */
  stop(): Promise<void>;
}

interface ProcessOptions {
  sdk: AgentSdk;
  tools: ToolServer;
  options: Record<string, unknown>;
  /** Time until the first message, ms. */
  startTimeoutMs: number;
  limits: ReplyLimits;
}

/** Longest wait, ms. The process usually ends in about 70 ms, together with its own children. */
const STOP_MS = 2000;
const STDERR_LIMIT = 2000;

function startProcess({ sdk, tools, options, startTimeoutMs, limits }: ProcessOptions): CliProcess {
  const inbox = createInbox<SdkUserMessage>();
  const exited = Promise.withResolvers<void>();
  let child: ChildProcess | null = null;
  let stderr = '';
  let spoke = false;
  let stopped = false;
  let end = '';
  const bounds = new OutputBounds(limits, (excess) => {
    end ||= excess.message;
    signalGroup(child, 'SIGKILL');
  });

  function spawnCli({ command, args, cwd, env }: SdkSpawn): SdkChild {
    // A process group of its own, so that only Troupe handles a Ctrl-C in the terminal.
    const spawned = spawn(command, args, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    child = spawned;
    spawned.stderr.setEncoding('utf8');
    spawned.stderr.on('data', (text: string) => (stderr = (stderr + text).slice(-STDERR_LIMIT)));
    spawned.stdin.on('error', ignore);
    spawned.once('error', (error) => over(error.message));
    spawned.once('exit', (code, by) => over(by ? `it was ended by ${by}` : `it ended with code ${code}`));
    if (stopped) signalGroup(child, 'SIGKILL');
    return Object.assign(spawned, { stdout: spawned.stdout.pipe(bounds.transform()) });
  }

  function over(words: string): void {
    end ||= words;
    clearTimeout(starting);
    inbox.end();
    exited.resolve();
  }

  const messages = sdk
    .query({
      prompt: inbox,
      options: { ...options, mcpServers: tools.servers, spawnClaudeCodeProcess: spawnCli },
    })
    [Symbol.asyncIterator]();
  const starting = setTimeout(() => {
    end ||= `it said nothing for ${startTimeoutMs} ms`;
    signalGroup(child, 'SIGKILL');
  }, startTimeoutMs);

  return {
    tools,
    exited: exited.promise,
    get isAlive() {
      return end === '';
    },
    send(content) {
      bounds.received = 0;
      inbox.put({ type: 'user', message: { role: 'user', content }, parent_tool_use_id: null });
    },
    async next() {
      try {
        const { value, done } = await messages.next();
        if (done) return null;
        spoke = true;
        clearTimeout(starting);
        return value;
      } catch (error) {
        // The SDK throws for every error result, and when the process ends.
        end ||= error instanceof Error ? error.message : String(error);
        return null;
      }
    },
    ending: () => ({
      spoke,
      words: [end, stderr.trim()].filter((text) => text !== '').join(': '),
      excess: bounds.excess,
    }),
    async stop() {
      stopped = true;
      end ||= 'it was stopped';
      if (!child) return over(end);
      await endGroup(child, exited.promise);
    },
  };
}

async function endGroup(child: ChildProcess, exited: Promise<void>): Promise<void> {
  signalGroup(child, 'SIGTERM');
  const late = new AbortController();
  wait(STOP_MS, undefined, { signal: late.signal }).then(() => signalGroup(child, 'SIGKILL'), ignore);
  await exited;
  late.abort();
}

/** Limits the output of the process, because the SDK reads lines of any length and buffers what it has read. */
class OutputBounds {
  readonly #limits: ReplyLimits;
  readonly #onExcess: (excess: TroupeError) => void;
  /** Bytes received in the current turn. */
  received = 0;
  excess: TroupeError | null = null;

  constructor(limits: ReplyLimits, onExcess: (excess: TroupeError) => void) {
    this.#limits = limits;
    this.#onExcess = onExcess;
  }

  transform(): Transform {
    const limits = this.#limits;
    const lines = new Cutter({
      of: 'lines',
      maxBytes: limits.eventBytes,
      tooLong: () => replyTooLong('eventBytes', limits),
    });
    return new Transform({
      transform: (piece: Buffer, _, done) => {
        if (this.excess) return done();
        try {
          this.received += piece.length;
          if (this.received > limits.receivedBytes) throw replyTooLong('receivedBytes', limits);
          const whole = lines.take(piece);
          done(null, whole ?? undefined);
        } catch (thrown) {
          this.excess = thrown as TroupeError;
          this.#onExcess(this.excess);
          done();
        }
      },
      flush: (done) => done(null, (this.excess ? null : lines.rest()) ?? undefined),
    });
  }
}

/** Writes to an ending process are lost; its end is reported elsewhere. */
function ignore(): void {}

interface Inbox<T> extends AsyncIterable<T> {
  put(item: T): void;
  end(): void;
}

export function createInbox<T>(): Inbox<T> {
  const items: T[] = [];
  let ended = false;
  let news = Promise.withResolvers<void>();
  return {
    put(item) {
      items.push(item);
      news.resolve();
    },
    end() {
      ended = true;
      news.resolve();
    },
    async *[Symbol.asyncIterator]() {
      while (true) {
        yield* items.splice(0);
        if (ended) return;
        await news.promise;
        news = Promise.withResolvers<void>();
      }
    },
  };
}

export interface ClaudeCodeSettings {
  /** Directory for configuration, sessions and, without `cwd`, working directories. */
  home: string;
  /** Working directory, created if missing. Default: an empty directory per cache key. */
  cwd?: string;
  /** Environment variables of the CLI besides PATH. */
  env: Readonly<Record<string, string>>;
  /** Default: Anthropic's. */
  baseUrl?: string;
  /** Without a key the CLI's own login is used; the CLI then adds text to the prompt. */
  apiKey?: string;
  /** Names of the CLI's own tools that may be used. */
  builtinTools: readonly string[];
}

/** The parameters of a process. A request that differs in any of them needs another process. */
export interface Launch extends Pick<ModelRequest, 'model' | 'tools' | 'maxOutputTokens'> {
  system: string;
}

export type SessionStart =
  | { kind: 'new'; id: string }
  | { kind: 'resume'; mark: SessionMark }
  | { kind: 'none' };

/** Nearly the longest timer, because the runtime's own deadlines apply to tools. */
const NEVER_MS = 2_000_000_000;
/** The API's minimum thinking budget. */
const LEAST_THINKING_TOKENS = 1024;

const SWITCHES: Readonly<Record<string, string>> = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_ERROR_REPORTING: '1',
  DISABLE_AUTOUPDATER: '1',
  // The engine does the backoff. Without this, text before a failure would be sent twice.
  CLAUDE_CODE_MAX_RETRIES: '0',
  CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK: '1',
  CLAUDE_CODE_DISABLE_CLAUDE_MDS: '1',
  CLAUDE_CODE_DISABLE_AUTO_MEMORY: '1',
  CLAUDE_CODE_DISABLE_MCP_TASK_BACKGROUND: '1',
  ENABLE_TOOL_SEARCH: 'false',
  MCP_TOOL_TIMEOUT: String(NEVER_MS),
  // Results are truncated before they reach the CLI.
  MAX_MCP_OUTPUT_TOKENS: '10000000',
};

export function configDir({ home }: ClaudeCodeSettings): string {
  return join(home, 'config');
}

export function workDir({ cwd, home }: Pick<ClaudeCodeSettings, 'cwd' | 'home'>, cacheKey: string): string {
  return cwd ?? join(home, 'work', shortHash(cacheKey));
}

function tempDir({ home }: ClaudeCodeSettings): string {
  return join(home, 'tmp');
}

export function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

/** Options of the SDK's `query`, without those that depend on the process. */
export function launchOptions(
  settings: ClaudeCodeSettings,
  { launch, session, cacheKey }: { launch: Launch; session: SessionStart; cacheKey: string },
): Record<string, unknown> {
  const { model, system } = launch;
  const cwd = workDir(settings, cacheKey);
  for (const dir of [cwd, configDir(settings), tempDir(settings)]) makePrivateDir(dir);
  return {
    cwd,
    env: envOf(settings, launch),
    ...(model !== 'default' && { model }),
    systemPrompt: { type: 'custom', prompt: system, snapshot: false },
    tools: settings.builtinTools,
    allowedTools: [`${TOOL_PREFIX}*`, ...settings.builtinTools],
    permissionMode: 'dontAsk',
    settingSources: [],
    strictMcpConfig: true,
    // Participants' text must never act as a command, or as the name of a file to read.
    verbatimPrompts: true,
    includePartialMessages: true,
    // Adds nothing but the conversation to the request. In this mode the CLI cannot read a login.
    extraArgs: settings.apiKey === undefined ? {} : { bare: null },
    ...(thinkingTokens(launch) === 0 && { thinking: { type: 'disabled' } }),
    ...sessionOptions(session),
  };
}

function sessionOptions(session: SessionStart): Record<string, unknown> {
  switch (session.kind) {
    case 'new':
      return { sessionId: session.id };
    case 'resume':
      return {
        resume: session.mark.id,
        ...(session.mark.checkpoint !== '' && { resumeSessionAt: session.mark.checkpoint }),
      };
    case 'none':
      return { persistSession: false };
  }
}

function envOf(settings: ClaudeCodeSettings, launch: Launch): Record<string, string> {
  const { home, env, baseUrl, apiKey } = settings;
  const { PATH = '' } = process.env;
  return {
    ...env,
    ...SWITCHES,
    PATH,
    HOME: home,
    CLAUDE_CONFIG_DIR: configDir(settings),
    CLAUDE_CODE_TMPDIR: tempDir(settings),
    CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(launch.maxOutputTokens),
    MAX_THINKING_TOKENS: String(thinkingTokens(launch)),
    ...(apiKey !== undefined && { ANTHROPIC_API_KEY: apiKey }),
    ...(baseUrl !== undefined && {
      ANTHROPIC_BASE_URL: baseUrl.replace(/\/(v1\/?)?$/, ''),
      // A gateway that does not know a beta feature refuses the request, which is then sent three times.
      CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS: '1',
    }),
  };
}

/** Thinking counts as output. Without this, models with a budget could spend the whole output limit on it. */
function thinkingTokens({ maxOutputTokens }: Launch): number {
  const half = Math.floor(maxOutputTokens / 2);
  return half < LEAST_THINKING_TOKENS ? 0 : half;
}
