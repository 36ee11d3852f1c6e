import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCodex, type CodexOptions } from '../src/codex/codex.ts';
import { findCodex } from '../src/codex/config.ts';
import { PEERS_ENV } from '../src/programs.ts';
import type { Provider } from '../../../src/providers/provider.ts';
import { unusableParts } from '../../../test/services/unusable.ts';
import {
  startFakeOpenAiResponses,
  type FakeHandler,
  type FakeRequest,
  type FakeServer,
} from '../../testing/src/fake-vendors.ts';
import type { SessionFixture } from '../../testing/src/session-conformance.ts';
import { killProcesses } from '../../../test/providers/kill-processes.ts';

process.env[PEERS_ENV] ??= join(import.meta.dirname, '../../../test/clis');

/** A model in the catalogue of the tested Codex version that calls tools by function calls. */
export const CODEX_MODEL = 'gpt-5.5';

const UNUSABLE = unusableParts().Codex ?? (isInstalled() ? null : 'test/clis is not installed');

/** Appended to the names of skipped tests; empty if Codex is there and runs. */
export const NO_CODEX = UNUSABLE === null ? '' : ` (skipped: no Codex (${UNUSABLE}))`;

function isInstalled(): boolean {
  try {
    return Boolean(findCodex());
  } catch {
    return false;
  }
}

/** The real CLI in front of a fake API, with its own home. */
export interface CodexStage extends SessionFixture {
  api: FakeServer;
  home: string;
  open(over?: Partial<CodexOptions>): Provider;
  /** Its processes, as listed by the system. */
  pids(): number[];
}

export async function startCodexStage(
  handler: FakeHandler,
  over: Partial<CodexOptions> = {},
): Promise<CodexStage> {
  const api = await startFakeOpenAiResponses(handler);
  const home = mkdtempSync(join(tmpdir(), 'troupe-codex-'));
  const opened: Provider[] = [];

  function open(more: Partial<CodexOptions> = {}): Provider {
    const provider = createCodex({
      home,
      env: {},
      baseUrl: api.url,
      apiKey: 'key-of-test',
      builtinTools: [],
      sandbox: 'read-only',
      ...over,
      ...more,
    });
    opened.push(provider);
    return provider;
  }

  return {
    api,
    home,
    open,
    provider: open(),
    model: CODEX_MODEL,
    async reopen() {
      await opened.at(-1)?.close?.();
      return open();
    },
    transcript: () => transcriptOf(api.requests.at(-1)),
    requests: () => api.requests.length,
    arrived: (number) => api.arrived(number),
    async kill() {
      await killProcesses(pidsOf(home));
    },
    pids: () => pidsOf(home),
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map(async (provider) => provider.close?.()));
      await api.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** All text of one request, in order. */
export function transcriptOf(request: FakeRequest | undefined): string {
  const { input = [] } = (request?.body ?? {}) as { input?: Record<string, unknown>[] };
  return input.map((item) => partsOf(item).join('\n')).join('\n');
}

function partsOf({ content, arguments: args, output, input }: Record<string, unknown>): string[] {
  if (Array.isArray(content)) return content.map(({ text }: { text?: string }) => text ?? '');
  return [args, input, typeof output === 'string' ? output : JSON.stringify(output)].filter(
    (part) => typeof part === 'string',
  );
}

/** Processes with this directory as their home. */
function pidsOf(home: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && environmentOf(pid).includes(`CODEX_HOME=${home}`));
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8');
  } catch {
    return ''; // The process has ended, or is not ours.
  }
}
