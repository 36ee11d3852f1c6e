import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { CLI_ENV, CLI_SOURCE } from '../services/bundled-cli.ts';
import { callCli } from './call.ts';

/** The file that is the command `troupe`. */
export const CLI = process.env[CLI_ENV] ?? CLI_SOURCE;

/** A directory with an agents file, where commands run. */
export interface Workplace extends Disposable {
  dir: string;
  write(name: string, content: unknown): string;
  run(args: string[], options?: { input?: string; env?: Record<string, string> }): Promise<Ran>;
  /** The same in this process: see `callCli`. */
  call(args: string[], options?: { env?: Record<string, string> }): Promise<Ran>;
  /** Starts a command that stays, with `--json`; resolves once it is ready. */
  start(args: string[], env?: Record<string, string>): Promise<Running>;
  /** `troupe dev --json` and its output when it was ready. */
  dev(args?: string[]): Promise<Dev>;
}

export interface Ran {
  code: number | null;
  out: string;
  err: string;
  /** The one JSON value on stdout, or on stderr if the command failed. */
  json: Record<string, unknown>;
}

export interface Running extends AsyncDisposable {
  child: ChildProcess;
  /** Its first line. */
  ready: Record<string, unknown>;
  /** All of its lines so far, as values. */
  lines: unknown[];
  /** Resolves with its next line. */
  nextLine(): Promise<void>;
  exited: Promise<number | null>;
  err: () => string;
}

export interface Dev extends Running {
  url: string;
  data: string;
}

export const AGENTS = {
  agents: [
    agent('planner', 'manager', [{ when: { step: 1 }, reply: 'plan {{n}}' }]),
    agent('worker', 'worker', [{ reply: 'work {{n}}' }]),
    agent('broken', 'peer', [{ fail: { code: 'provider_auth', message: 'no such key' } }]),
    agent('slow', 'peer', [{ reply: 'abcdefgh', chunk: 1, chunkDelayMs: 250 }]),
  ],
  defaults: { respondWhenUnaddressed: 'planner' },
};

function agent(id: string, role: string, rules: object[]): object {
  return { id, name: id, role, provider: 'scripted', model: 'test', script: { rules } };
}

/** Variables that name servers and credentials of other places. */
const OUTSIDE = ['TROUPE_URL', 'TROUPE_TOKEN', 'TROUPE_KEY', 'MONGODB_URL', 'POSTGRES_URL', 'REDIS_URL'];

export interface WorkplaceOptions {
  agents?: object | null;
  /** Begins the command line of started processes, e.g. `setpriv` with its arguments. */
  launcher?: readonly string[];
}

export function workplace({ agents = AGENTS, launcher = [] }: WorkplaceOptions = {}): Workplace {
  const dir = mkdtempSync(path.join(tmpdir(), 'troupe-cli-'));
  const env: NodeJS.ProcessEnv = { ...process.env, NO_COLOR: '1' };
  // A bundle belongs to one run, and so does its compile cache.
  if (CLI !== CLI_SOURCE) env['NODE_COMPILE_CACHE'] = path.join(path.dirname(CLI), 'compiled');
  delete env['FORCE_COLOR'];
  for (const name of OUTSIDE) delete env[name];
  const running = new Set<ChildProcess>();

  function launch(args: string[], more: Record<string, string> = {}): ChildProcess {
    const [command = '', ...rest] = [...launcher, process.execPath, CLI, ...args];
    const child = spawn(command, rest, { cwd: dir, env: { ...env, ...more } });
    running.add(child);
    child.on('close', () => running.delete(child));
    return child;
  }
  async function start(args: string[], more?: Record<string, string>): Promise<Running> {
    const child = launch([...args, '--json'], more);
    const err = collect(child.stderr);
    const exited = closed(child);
    const output = readLines(child);
    await Promise.race([output.nextLine(), early(exited, err)]);
    return {
      child,
      ready: output.lines[0] as Record<string, unknown>,
      ...output,
      exited,
      err,
      async [Symbol.asyncDispose]() {
        child.kill('SIGTERM');
        await exited;
      },
    };
  }
  function write(name: string, content: unknown): string {
    const file = path.join(dir, name);
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
    return file;
  }
  if (agents) write('agents.json', agents);

  return {
    dir,
    write,
    async run(args, { input, env: more } = {}) {
      const child = launch(args, more);
      const [out, err] = [collect(child.stdout), collect(child.stderr)];
      child.stdin?.end(input ?? '');
      const code = await closed(child);
      const json = { out: out(), err: err() };
      return { code, ...json, json: parse(code === 0 ? json.out : json.err) };
    },
    async call(args, { env: more } = {}) {
      const ran = await callCli(args, dir, { ...env, ...more });
      return { ...ran, json: parse(ran.code === 0 ? ran.out : ran.err) };
    },
    start,
    async dev(args = []) {
      const running = await start(['dev', '--port', '0', ...args]);
      const { url, data } = running.ready as { url: string; data: string };
      return { ...running, url, data };
    },
    [Symbol.dispose]() {
      for (const child of running) child.kill('SIGKILL');
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

function collect(stream: NodeJS.ReadableStream | null): () => string {
  let text = '';
  stream?.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  return () => text;
}

function closed(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.on('close', (code) => resolve(code)));
}

/** Lines are kept from the start, since several may come at once. */
function readLines(child: ChildProcess): Pick<Running, 'lines' | 'nextLine'> {
  if (!child.stdout) throw new Error('no stdout');
  const lines: unknown[] = [];
  let notify = () => {};
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(JSON.parse(line));
    notify();
  });
  return { lines, nextLine: () => new Promise((resolve) => (notify = resolve)) };
}

async function early(exited: Promise<number | null>, err: () => string): Promise<never> {
  const code = await exited;
  throw new Error(`it ended with ${code}: ${err()}`);
}

function parse(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    // Text for people, which the test reads itself.
    return {};
  }
}
