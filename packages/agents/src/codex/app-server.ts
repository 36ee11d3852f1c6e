import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { type Clock, Cutter, type ReplyLimits, replyTooLong, signalGroup, TroupeError } from '../troupe.ts';
import type { Codex } from './config.ts';
import { ToolCallParams } from './protocol.ts';

export interface ThreadListener {
  notified(method: string, params: unknown): void;
  /** Resolves with the result of the tool. */
  called(call: ToolCallParams): Promise<ToolAnswer>;
  /** The process has ended. */
  lost(reason: TroupeError): void;
}

export interface ToolAnswer {
  success: boolean;
  contentItems: { type: 'inputText'; text: string }[];
}

export interface AppServer {
  readonly pid: number;
  readonly isAlive: boolean;
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>;
  /** Rejects with a TroupeError. */
  call(method: string, params: object): Promise<unknown>;
  /** Sets the one listener of a thread; null removes it. */
  listen(threadId: string, listener: ThreadListener | null): void;
  /** Lets the process write its state; kills it if that takes too long. */
  close(): Promise<void>;
  /** Kills a process that does not react. */
  kill(): void;
}

interface AppServerOptions {
  codex: Codex;
  env: Readonly<Record<string, string>>;
  cwd: string;
  clock: Clock;
  startTimeoutMs: number;
  limits: ReplyLimits;
}

const CLOSE_MS = 2000;
const STDERR_CHARS = 2000;

/**
 * Starts `codex app-server`, which holds any number of threads and speaks JSON-RPC over its standard streams. It ends when its
 * input closes, so it does not outlive this process.
 */
export async function startAppServer(options: AppServerOptions): Promise<AppServer> {
  const { codex, env, cwd, clock, limits } = options;
  const child = spawn(codex.command, [...codex.args, 'app-server'], {
    cwd,
    env,
    // A process group of its own: its children end with it, and only Troupe handles a Ctrl-C.
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const listeners = new Map<string, ThreadListener>();
  const rpc = new JsonRpc((line) => child.stdin.write(line), peerOf(listeners));
  const output = readOutput(child, rpc, limits);
  const ended = endOf(child, output, (reason) => {
    rpc.end(reason);
    for (const listener of listeners.values()) listener.lost(reason);
  });
  const server: AppServer = {
    pid: child.pid ?? 0,
    get isAlive() {
      return isRunning(child);
    },
    ended,
    call: (method, params) => rpc.call(method, params),
    listen: (threadId, listener) =>
      listener ? void listeners.set(threadId, listener) : void listeners.delete(threadId),
    async close() {
      child.stdin.end();
      const closed = new AbortController();
      const late = clock.sleep(CLOSE_MS, closed.signal).then(() => {
        if (!closed.signal.aborted) signalGroup(child, 'SIGKILL');
      });
      await ended;
      closed.abort();
      await late;
    },
    kill: () => killGroup(child),
  };
  await initialize(options, rpc, { child, ended, output });
  return server;
}

function peerOf(listeners: ReadonlyMap<string, ThreadListener>): RpcPeer {
  return {
    notified: (method, params) => listeners.get(threadOf(params))?.notified(method, params),
    async requested(method, params) {
      // Approvals and questions cannot be answered here, so an error refuses them.
      if (method !== 'item/tool/call') throw new TroupeError('internal', `not answered here: ${method}`);
      const call = ToolCallParams.parse(params);
      const listener = listeners.get(call.threadId);
      if (!listener) throw new TroupeError('internal', 'this thread has no listener');
      return listener.called(call);
    },
  };
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** The end of stderr, and the error if the process has sent too much. */
interface Output {
  stderr: string;
  excess: TroupeError | null;
}

function readOutput(child: Child, rpc: JsonRpc, limits: ReplyLimits): Output {
  const output: Output = { stderr: '', excess: null };
  const lines = new Cutter({
    of: 'lines',
    maxBytes: limits.eventBytes,
    tooLong: () => replyTooLong('eventBytes', limits),
  });
  child.stdout.on('data', (piece: Buffer) => {
    if (output.excess) return;
    try {
      const whole = lines.take(piece);
      for (const line of whole ? Buffer.from(whole).toString().split('\n') : []) if (line) rpc.receive(line);
    } catch (thrown) {
      // A line without end: nothing after it can be read.
      if (!(thrown instanceof TroupeError)) throw thrown;
      output.excess = thrown;
      killGroup(child);
    }
  });
  child.stderr.on('data', (data: Buffer) => {
    output.stderr = (output.stderr + data.toString()).slice(-STDERR_CHARS);
  });
  // A failed write means that the process has ended, which `ended` reports.
  child.stdin.on('error', () => {});
  return output;
}

function endOf(child: Child, output: Output, onEnd: (reason: TroupeError) => void): Promise<void> {
  let failure: string | null = null;
  return new Promise<void>((resolve) => {
    child.once('error', (error) => {
      failure = error.message;
      if (child.pid === undefined) gone();
    });
    // A descendant that keeps the pipes open would delay `close` for as long as it lives.
    child.once('exit', () => signalGroup(child, 'SIGKILL'));
    child.once('close', gone);
    function gone(): void {
      const how = failure ?? child.signalCode ?? `code ${child.exitCode}`;
      const message = `Codex ended unexpectedly (${how})${tail(output.stderr)}`;
      onEnd(output.excess ?? new TroupeError('provider_failed', message));
      resolve();
    }
  });
}

async function initialize(
  { codex, clock, startTimeoutMs }: AppServerOptions,
  rpc: JsonRpc,
  { child, ended, output }: { child: Child; ended: Promise<void>; output: Output },
): Promise<void> {
  const started = new AbortController();
  const answer = rpc
    .call('initialize', {
      clientInfo: { name: 'troupe', title: 'Troupe', version: '0' },
      capabilities: { experimentalApi: true, requestAttestation: false },
    })
    .then(() => 'ready' as const);
  const late = clock.sleep(startTimeoutMs, started.signal).then(() => 'late' as const);
  const outcome = await Promise.race([answer, late]).catch((thrown: unknown) => thrown);
  started.abort();
  if (outcome === 'ready') return rpc.notify('initialized');
  // Killed from outside: the program itself works, so it may be started again.
  const isKilled = child.signalCode !== null;
  signalGroup(child, 'SIGKILL');
  await ended;
  answer.catch(() => {});
  if (isKilled && outcome instanceof TroupeError) throw outcome;
  const why = outcome === 'late' ? `did not answer for ${startTimeoutMs} ms` : messageOf(outcome);
  const message = `Codex ${codex.version} cannot be used, its app-server ${why}`;
  throw new TroupeError('provider_unusable', outcome === 'late' ? message + tail(output.stderr) : message, {
    package: '@openai/codex',
    version: codex.version,
  });
}

function threadOf(params: unknown): string {
  const { threadId } = (params ?? {}) as { threadId?: unknown };
  return typeof threadId === 'string' ? threadId : '';
}

function messageOf(thrown: unknown): string {
  return `failed: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
}

function tail(said: string): string {
  // eslint-disable-next-line no-control-regex
  const plain = said.replaceAll(/\u001B\[[0-9;]*m/g, '').trim();
  return plain === '' ? '' : `; it said: ${plain.slice(-500)}`;
}

function isRunning({ exitCode, signalCode }: Child): boolean {
  return exitCode === null && signalCode === null;
}

function killGroup(child: Child): void {
  if (isRunning(child)) signalGroup(child, 'SIGKILL');
}

/** Handles what the other side sends. */
interface RpcPeer {
  notified(method: string, params: unknown): void;
  /** A request whose handler throws is answered with an error, so that none is left hanging. */
  requested(method: string, params: unknown): Promise<unknown>;
}

interface Message {
  id?: number | string;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string };
}

const METHOD_NOT_FOUND = -32601;
const CALLERS_FAULT = [-32600, -32602];
/** Errors about a thread or turn that is missing, or held by another process. */
const LOST =
  /no rollout found|invalid (session|thread) id|(thread|turn|session) not found|active writer|thread .{0,60} is closing/i;

/** JSON-RPC 2.0 in both directions, one message per line. */
class JsonRpc {
  readonly #write: (line: string) => void;
  readonly #peer: RpcPeer;
  readonly #calls = new Map<number, PromiseWithResolvers<unknown>>();
  #lastId = 0;
  #ended: TroupeError | null = null;

  constructor(write: (line: string) => void, peer: RpcPeer) {
    this.#write = write;
    this.#peer = peer;
  }

  /** Rejects with a TroupeError. */
  async call(method: string, params: object): Promise<unknown> {
    if (this.#ended) throw this.#ended;
    const id = ++this.#lastId;
    const answer = Promise.withResolvers<unknown>();
    this.#calls.set(id, answer);
    this.#send({ id, method, params });
    return answer.promise;
  }

  notify(method: string): void {
    this.#send({ method });
  }

  receive(line: string): void {
    const message = parse(line);
    if (!message) return;
    const { id, method, params } = message;
    if (method === undefined) return this.#answered(message);
    if (id === undefined) return this.#peer.notified(method, params);
    void this.#answer(id, method, params);
  }

  /** Rejects all pending calls: no more responses will come. */
  end(reason: TroupeError): void {
    this.#ended ??= reason;
    for (const { reject } of this.#calls.values()) reject(reason);
    this.#calls.clear();
  }

  #answered({ id, result, error }: Message): void {
    const call = this.#calls.get(Number(id));
    this.#calls.delete(Number(id));
    if (error) call?.reject(failure(error));
    else call?.resolve(result);
  }

  async #answer(id: number | string, method: string, params: unknown): Promise<void> {
    try {
      this.#send({ id, result: await this.#peer.requested(method, params) });
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      this.#send({ id, error: { code: METHOD_NOT_FOUND, message } });
    }
  }

  #send(message: Message): void {
    if (!this.#ended) this.#write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  }
}

/** Null for a line that is not a message: for example, a panic writes to the same stream. */
function parse(line: string): Message | null {
  try {
    const value = JSON.parse(line) as unknown;
    return typeof value === 'object' && value !== null ? value : null;
  } catch {
    return null;
  }
}

function failure({ code, message }: { code: number; message: string }): TroupeError {
  if (LOST.test(message)) return new TroupeError('provider_session_lost', message);
  const fault = CALLERS_FAULT.includes(code) ? 'provider_invalid_request' : 'provider_failed';
  return new TroupeError(fault, `Codex refused: ${message}`);
}
