import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { ReadBuffer } from '@modelcontextprotocol/sdk/shared/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import type { Clock } from '../../clock.ts';
import { Cutter } from '../../net/cutter.ts';
import { messageOf } from './messages.ts';

export const MAX_MESSAGE_BYTES = 10 * 1_024 * 1_024;
const MAX_UNREAD_BYTES = 32 * 1_024 * 1_024;
/** What is kept of the end of stderr. */
const STDERR_CHARACTERS = 2_048;
/** After its input has ended, and after SIGTERM. Together well within what a process that shuts down is given. */
const END_GRACE_MS = 500;
const TERM_GRACE_MS = 1_500;

export interface StdioProcess {
  command: string;
  args: readonly string[];
  cwd: string | undefined;
  /** All of it: nothing else is inherited. */
  env: Record<string, string>;
}

export interface StdioTransport extends Transport {
  /** How the process ended; null while it runs. */
  ending(): string | null;
  /** The last line of its stderr, or ''. */
  lastLine(): string;
}

/**
 * A server as a process of its own group, which makes it differ from the SDK's transport: an interrupt at the terminal
 * reaches Troupe alone, whose running calls may then end; whatever the server has started ends with it; and it sees no
 * variable that it is not given.
 */
export function createStdioTransport(
  { command, args, cwd, env }: StdioProcess,
  { clock, buffer }: { clock: Clock; buffer: ReadBuffer },
): StdioTransport {
  const gone = new AbortController();
  const lines = new Cutter({
    of: 'lines',
    maxBytes: MAX_MESSAGE_BYTES,
    tooLong: () => new Error(`a message is over the maximum size of ${MAX_MESSAGE_BYTES} bytes`),
  });
  let child: ChildProcessByStdio<Writable, Readable, Readable> | null = null;
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
          signalGroup('SIGKILL');
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
        // It asks and asks, and does not read what it is answered.
        if ((child?.stdin.writableLength ?? 0) > MAX_UNREAD_BYTES)
          giveUp(new Error('it does not read its input'));
        if (child) child.stdin.write(`${JSON.stringify(message)}\n`, written);
        else reject(new Error('it is not running'));
      });
    },
    close: () => (closing ??= stop()),
    ending: () => ending,
    lastLine: () => stderr.trimEnd().split('\n').at(-1)?.trim() ?? '',
  };

  /** A pipe that is closed is mostly that of a process about to end: how it ended says more. */
  async function refuse(error: Error, reject: (error: Error) => void): Promise<void> {
    await clock.sleep(END_GRACE_MS, gone.signal);
    reject(error);
  }

  function receive(chunk: Buffer): void {
    if (closing) return;
    try {
      const whole = lines.take(chunk);
      if (whole) buffer.append(Buffer.from(whole));
    } catch (error) {
      // A message without an end: what follows could not be read either.
      return giveUp(error);
    }
    for (let more = !closing; more && !closing;) more = receiveOne();
  }

  function giveUp(why: unknown): void {
    ending ??= `it was ended: ${messageOf(why)}`;
    void transport.close();
  }

  /** A line that is no message is passed over: some servers print there. */
  function receiveOne(): boolean {
    try {
      const message = buffer.readMessage();
      if (message) transport.onmessage?.(message);
      return message !== null;
    } catch (error) {
      transport.onerror?.(error as Error);
      return true;
    }
  }

  async function stop(): Promise<void> {
    if (child?.pid === undefined || gone.signal.aborted) return;
    child.stdin.end();
    await clock.sleep(END_GRACE_MS, gone.signal);
    if (gone.signal.aborted) return;
    signalGroup('SIGTERM');
    await clock.sleep(TERM_GRACE_MS, gone.signal);
    if (gone.signal.aborted) return;
    signalGroup('SIGKILL');
    await clock.sleep(TERM_GRACE_MS, gone.signal);
  }

  function signalGroup(signal: NodeJS.Signals): void {
    if (child?.pid === undefined) return;
    try {
      process.kill(-child.pid, signal);
    } catch {
      // Nobody is left in the group.
    }
  }

  return transport;
}
