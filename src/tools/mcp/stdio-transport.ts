import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import type { Clock } from '../../base/clock.ts';
import { Cutter } from '../../base/net/cutter.ts';
import { signalGroup } from '../../base/process-group.ts';
import { messageOf, ForeignAnswer, type Wire } from './wire.ts';

export const MAX_MESSAGE_BYTES = 10 * 1_024 * 1_024;
const MAX_UNREAD_BYTES = 32 * 1_024 * 1_024;
/** Number of characters kept from the end of stderr. */
const STDERR_CHARACTERS = 2_048;
/**
 * Time the process has to end after stdin is closed, and again after SIGTERM, ms. Both together fit well within a usual
 * shutdown period.
 */
const END_GRACE_MS = 500;
const TERM_GRACE_MS = 1_500;

interface StdioProcess {
  command: string;
  args: readonly string[];
  cwd: string | undefined;
  /** The whole environment: no other variable is inherited. */
  env: Record<string, string>;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

interface StdioTransport extends Transport {
  /** How the process ended; null while it runs. */
  ending(): string | null;
  /** It ended by itself, with an exit code. */
  hasExited(): boolean;
  /** The last line of stderr, or ''. */
  lastLine(): string;
}

/**
 * Runs a server in a process group of its own. Unlike the SDK's transport: an interrupt at the terminal reaches only Troupe, so
 * that running calls can finish; child processes of the server end with it; and it sees only the variables that it is given.
 */
export function createStdioTransport(
  { command, args, cwd, env }: StdioProcess,
  { clock, wire }: { clock: Clock; wire: Wire },
): StdioTransport {
  const gone = new AbortController();
  const lines = new Cutter({
    of: 'lines',
    maxBytes: MAX_MESSAGE_BYTES,
    tooLong: () => new Error(`a message is over the maximum size of ${MAX_MESSAGE_BYTES} bytes`),
  });
  let child: Child | null = null;
  let closing: Promise<void> | null = null;
  let stderr = '';
  let ending: string | null = null;

  const transport: StdioTransport = {
    start: () =>
      new Promise((resolve, reject) => {
        child = spawn(command, args, { cwd, env, stdio: 'pipe', detached: true });
        child.once('spawn', resolve);
        child.on('error', reject);
        child.once('exit', (code, signal) => {
          ending ??= signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`;
          signalGroup(child, 'SIGKILL');
        });
        child.once('close', () => {
          gone.abort();
          transport.onclose?.();
        });
        for (const stream of child.stdio) stream?.on('error', (error) => transport.onerror?.(error));
        child.stdout.on('data', receive);
        child.stderr.setEncoding('utf8').on('data', (text: string) => {
          stderr = (stderr + text).slice(-STDERR_CHARACTERS);
        });
      }),
    send(message: JSONRPCMessage) {
      return new Promise((resolve, reject) => {
        const written = (error: Error | null | undefined) => (error ? void refuse(error, reject) : resolve());
        // The server keeps sending requests without reading the answers.
        if ((child?.stdin.writableLength ?? 0) > MAX_UNREAD_BYTES)
          giveUp(new Error('it does not read its input'));
        if (child) child.stdin.write(`${JSON.stringify(message)}\n`, written);
        else reject(new Error('it is not running'));
      });
    },
    close: () => (closing ??= stop(child, clock, gone.signal)),
    ending: () => ending,
    hasExited: () => closing === null && (child?.exitCode ?? -1) >= 0,
    lastLine: () => stderr.trimEnd().split('\n').at(-1)?.trim() ?? '',
  };

  /** A closed pipe usually means that the process is about to end. How it ends explains more than this error. */
  async function refuse(error: Error, reject: (error: Error) => void): Promise<void> {
    await clock.sleep(END_GRACE_MS, gone.signal);
    reject(error);
  }

  function receive(chunk: Buffer): void {
    if (closing) return;
    try {
      const whole = lines.take(chunk);
      if (!whole) return;
      // Empty lines count like others. The last line also ends with a line feed.
      for (const line of Buffer.from(whole).toString().slice(0, -1).split('\n'))
        if (!closing) receiveLine(line, { wire, clock, transport, gone: gone.signal });
    } catch (error) {
      // A message without end: nothing after it can be read.
      return giveUp(error);
    }
  }

  function giveUp(why: unknown): void {
    ending ??= `it was ended: ${messageOf(why)}`;
    void transport.close();
  }

  return transport;
}

interface Receiving {
  wire: Wire;
  clock: Clock;
  transport: Transport;
  gone: AbortSignal;
}

/** A line that is not a message is skipped, because some servers print to stdout. */
function receiveLine(line: string, to: Receiving): void {
  let messages: JSONRPCMessage[];
  try {
    messages = to.wire.read(line);
  } catch (error) {
    if (error instanceof ForeignAnswer) void waitForOther(error.waiting, to);
    return to.transport.onerror?.(error as Error);
  }
  for (const message of messages) to.transport.onmessage?.(message);
}

/** How long the right answer is awaited after one with another id, ms. */
const FOREIGN_MS = 2_000;

async function waitForOther(
  id: ForeignAnswer['waiting'],
  { wire, clock, transport, gone }: Receiving,
): Promise<void> {
  await clock.sleep(FOREIGN_MS, gone);
  const failed = gone.aborted ? null : wire.fail(id, 'it answered with another id');
  if (failed) transport.onmessage?.(failed);
}

async function stop(child: Child | null, clock: Clock, gone: AbortSignal): Promise<void> {
  if (child?.pid === undefined || gone.aborted) return;
  child.stdin.end();
  await clock.sleep(END_GRACE_MS, gone);
  if (gone.aborted) return;
  signalGroup(child, 'SIGTERM');
  await clock.sleep(TERM_GRACE_MS, gone);
  if (gone.aborted) return;
  signalGroup(child, 'SIGKILL');
  await clock.sleep(TERM_GRACE_MS, gone);
}
