import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type ClaudeCodeOptions, createClaudeCode } from '../src/claude-code/claude-code.ts';
import { PEERS_ENV } from '../src/programs.ts';
import type { Provider } from '../../../src/providers/provider.ts';
import { unusableParts } from '../../../test/services/unusable.ts';
import {
  startFakeAnthropic,
  type FakeHandler,
  type FakeReply,
  type FakeRequest,
  type FakeServer,
} from '../../testing/src/fake-vendors.ts';

export const CLIS = path.join(import.meta.dirname, '../../../test/clis');

/** The programs under test are not dependencies: npm ci --prefix test/clis --ignore-scripts. */
const UNUSABLE = unusableParts()['Claude Code'];
export const HAS_CLAUDE_CODE =
  UNUSABLE === undefined && existsSync(path.join(CLIS, 'node_modules/@anthropic-ai/claude-agent-sdk'));
process.env[PEERS_ENV] = CLIS;

export const NO_CLAUDE_CODE = `skipped: no Claude Code (${UNUSABLE ?? 'test/clis is not installed'})`;

export interface ClaudeCodeStage extends AsyncDisposable {
  server: FakeServer;
  home: string;
  provider: Provider;
  /** Closes the provider and opens another one, as a new process would. */
  reopen(over?: Partial<ClaudeCodeOptions>): Promise<Provider>;
}

/** The real program in a private directory, connected to a fake vendor only. */
export async function openStage(
  handler: FakeHandler,
  over: Partial<ClaudeCodeOptions> = {},
): Promise<ClaudeCodeStage> {
  const server = await startFakeAnthropic(async (request) => withToolNames(await handler(request)));
  const home = mkdtempSync(path.join(tmpdir(), 'troupe-claude-code-'));
  const create = (more: Partial<ClaudeCodeOptions> = {}) =>
    createClaudeCode({
      home,
      env: {},
      baseUrl: server.url,
      apiKey: 'key-of-test',
      builtinTools: [],
      ...over,
      ...more,
    });
  const stage: ClaudeCodeStage = {
    server,
    home,
    provider: create(),
    async reopen(more) {
      await stage.provider.close?.();
      return (stage.provider = create(more));
    },
    async [Symbol.asyncDispose]() {
      await stage.provider.close?.();
      await server.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
  return stage;
}

/** The fake model sees our tools under longer names. The names of Claude Code's own tools begin with a capital. */
function withToolNames(reply: FakeReply): FakeReply {
  const shown = (name: string) => (/^[A-Z]/.test(name) ? name : `mcp__troupe__${name}`);
  const calls = reply.calls?.map((call) => ({ ...call, name: shown(call.name) }));
  return calls ? { ...reply, calls } : reply;
}

/** All text of a request, in order: instructions, messages, calls, results. */
export function wordsOf({ body }: FakeRequest): string {
  const { system, messages } = body as { system: unknown; messages: unknown };
  return textsIn([system, messages]).join('\n');
}

function textsIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(textsIn);
  if (typeof value !== 'object' || value === null) return [];
  const { text, content, input, name } = value as Record<string, unknown>;
  const own = [text, content].filter((each) => typeof each === 'string');
  const call = input === undefined ? [] : [`${String(name)} ${JSON.stringify(input)}`];
  return [...own, ...call, ...textsIn(content)];
}

/** Running child processes of this process. */
export function childrenOf(pid = process.pid): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const [, state, parent] = /\) (\w) (\d+)/.exec(readFileSync(`/proc/${name}/stat`, 'utf8')) ?? [];
      const isCli = readFileSync(`/proc/${name}/cmdline`, 'utf8').includes('claude-agent-sdk');
      return isCli && state !== 'Z' && Number(parent) === pid ? [Number(name)] : [];
    } catch {
      return []; // Not a process, or just ended.
    }
  });
}
