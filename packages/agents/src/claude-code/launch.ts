import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { makePrivateDir, type ModelRequest, type SessionMark } from '../troupe.ts';
import { TOOL_PREFIX } from './tool-server.ts';

export interface ClaudeCodeSettings {
  /** Directory for configuration, sessions and, without `cwd`, working directories. */
  home: string;
  /** Working directory, created if missing. Default: an empty directory per cache key. */
  cwd?: string;
  /** Environment variables of the CLI besides PATH. */
  env: Readonly<Record<string, string>>;
  /** Default: that of Anthropic. */
  baseUrl?: string;
  /** Without a key the CLI's own login is used; the CLI then adds text to the prompt. */
  apiKey?: string;
  /** The CLI's own tools that may be used, by their names there. */
  builtinTools: readonly string[];
}

/** The parameters of a process: a request that differs in any of them needs another process. */
export interface Launch extends Pick<ModelRequest, 'model' | 'tools' | 'maxOutputTokens'> {
  system: string;
}

export type SessionStart =
  | { kind: 'new'; id: string }
  | { kind: 'resume'; mark: SessionMark }
  | { kind: 'none' };

/** Nearly the longest timer: tools run under the deadlines of the runtime instead. */
const NEVER_MS = 2_000_000_000;
/** The API's minimum thinking budget. */
const LEAST_THINKING_TOKENS = 1024;

const SWITCHES: Readonly<Record<string, string>> = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_ERROR_REPORTING: '1',
  DISABLE_AUTOUPDATER: '1',
  // The engine does the backoff. Without streaming, text before a failure would be sent twice.
  CLAUDE_CODE_MAX_RETRIES: '0',
  CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK: '1',
  CLAUDE_CODE_DISABLE_CLAUDE_MDS: '1',
  CLAUDE_CODE_DISABLE_AUTO_MEMORY: '1',
  CLAUDE_CODE_DISABLE_MCP_TASK_BACKGROUND: '1',
  ENABLE_TOOL_SEARCH: 'false',
  MCP_TOOL_TIMEOUT: String(NEVER_MS),
  // Results are cut to size before they reach the CLI.
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
    // Participants' words are never commands or names of files to read.
    verbatimPrompts: true,
    includePartialMessages: true,
    // Nothing but the conversation goes into the request. In this mode the CLI cannot read a login.
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
      // A gateway that does not know a beta refuses the request, which is then sent three times.
      CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS: '1',
    }),
  };
}

/** Thinking counts as output: without this, models with a budget could spend the whole output limit on it. */
function thinkingTokens({ maxOutputTokens }: Launch): number {
  const half = Math.floor(maxOutputTokens / 2);
  return half < LEAST_THINKING_TOKENS ? 0 : half;
}
