import { type ChildProcess, spawn } from 'node:child_process';
import { type Readable, Transform } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type { TroupeError } from '../../errors.ts';
import { Cutter } from '../../net/cutter.ts';
import { type ReplyLimits, replyTooLong } from '../reply-limits.ts';
import type { AgentSdk, SdkChild, SdkMessage, SdkSpawn, SdkUserMessage } from './agent-sdk.ts';
import type { PromptBlock } from './prompt-blocks.ts';
import type { ToolServer } from './tool-server.ts';

/** One running Claude Code with one session. It stays open between turns. */
export interface CliProcess {
  readonly tools: ToolServer;
  /** False as soon as it is on its way out. */
  readonly isAlive: boolean;
  readonly exited: Promise<void>;
  /** One message of a user: a turn begins. */
  send(content: readonly PromptBlock[]): void;
  /** What it says next; null when it has ended. */
  next(): Promise<SdkMessage | null>;
  /** Why it ended, whether it had said anything before, and whether it was because it said too much. */
  ending(): { spoke: boolean; words: string; excess: TroupeError | null };
  /** Ends it, whatever it does, in at most two seconds. What it has begun may or may not be in its session. */
  stop(): Promise<void>;
}

export interface ProcessOptions {
  sdk: AgentSdk;
  tools: ToolServer;
  options: Record<string, unknown>;
  /** How long it may take to say anything. */
  startTimeoutMs: number;
  limits: ReplyLimits;
}

/** It ends in some 70 ms when asked to, and takes its own children with it. */
const STOP_MS = 2000;
const STDERR_LIMIT = 2000;

export function startProcess({ sdk, tools, options, startTimeoutMs, limits }: ProcessOptions): CliProcess {
  const inbox = createInbox<SdkUserMessage>();
  const exited = Promise.withResolvers<void>();
  let child: ChildProcess | null = null;
  let stderr = '';
  let spoke = false;
  let stopped = false;
  let end = '';
  let excess: TroupeError | null = null;
  /** Bytes of the turn that is under way. */
  let received = 0;

  function spawnCli({ command, args, cwd, env }: SdkSpawn): SdkChild {
    // In a process group of its own: a Ctrl-C in the terminal is for us to hear.
    const spawned = spawn(command, args, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    child = spawned;
    spawned.stderr.setEncoding('utf8');
    spawned.stderr.on('data', (text: string) => (stderr = (stderr + text).slice(-STDERR_LIMIT)));
    spawned.stdin.on('error', ignore);
    spawned.once('error', (error) => over(error.message));
    spawned.once('exit', (code, by) => over(by ? `it was ended by ${by}` : `it ended with code ${code}`));
    if (stopped) signal('SIGKILL');
    return Object.assign(spawned, { stdout: bounded(spawned.stdout) });
  }

  /** The SDK reads lines of any length, and keeps what it has read until somebody asks for it. */
  function bounded(stdout: Readable): Readable {
    const lines = new Cutter({
      of: 'lines',
      maxBytes: limits.eventBytes,
      tooLong: () => replyTooLong('eventBytes', limits),
    });
    const checked = new Transform({
      transform(piece: Buffer, _, done) {
        if (excess) return done();
        try {
          received += piece.length;
          if (received > limits.receivedBytes) throw replyTooLong('receivedBytes', limits);
          const whole = lines.take(piece);
          done(null, whole ?? undefined);
        } catch (thrown) {
          excess = thrown as TroupeError;
          end ||= excess.message;
          signal('SIGKILL');
          done();
        }
      },
      flush: (done) => done(null, (excess ? null : lines.rest()) ?? undefined),
    });
    return stdout.pipe(checked);
  }

  function over(words: string): void {
    end ||= words;
    clearTimeout(starting);
    inbox.end();
    exited.resolve();
  }

  function signal(name: NodeJS.Signals): void {
    try {
      if (child?.pid !== undefined) process.kill(-child.pid, name);
    } catch {
      // It has ended by itself.
    }
  }

  const messages = sdk
    .query({
      prompt: inbox,
      options: { ...options, mcpServers: tools.servers, spawnClaudeCodeProcess: spawnCli },
    })
    [Symbol.asyncIterator]();
  const starting = setTimeout(() => {
    end ||= `it said nothing for ${startTimeoutMs} ms`;
    signal('SIGKILL');
  }, startTimeoutMs);

  return {
    tools,
    exited: exited.promise,
    get isAlive() {
      return end === '';
    },
    send(content) {
      received = 0;
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
        // The SDK throws for every result that tells of an error, and when the process ends.
        end ||= error instanceof Error ? error.message : String(error);
        return null;
      }
    },
    ending: () => ({ spoke, words: [end, stderr.trim()].filter((text) => text !== '').join(': '), excess }),
    async stop() {
      stopped = true;
      end ||= 'it was stopped';
      if (!child) return over(end);
      signal('SIGTERM');
      const late = new AbortController();
      wait(STOP_MS, undefined, { signal: late.signal }).then(() => signal('SIGKILL'), ignore);
      await exited.promise;
      late.abort();
    },
  };
}

/** What is written to a process that is ending is lost, and its end is told otherwise. */
function ignore(): void {}

/** A queue that one reader waits at. */
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
