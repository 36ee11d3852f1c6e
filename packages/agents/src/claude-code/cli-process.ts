import { type ChildProcess, spawn } from 'node:child_process';
import { Transform } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { Cutter, type ReplyLimits, replyTooLong, signalGroup, type TroupeError } from '../troupe.ts';
import type { AgentSdk, SdkChild, SdkMessage, SdkSpawn, SdkUserMessage } from './agent-sdk.ts';
import type { PromptBlock } from './prompt-blocks.ts';
import type { ToolServer } from './tool-server.ts';

/** A running Claude Code process with one session. It stays open between turns. */
export interface CliProcess {
  readonly tools: ToolServer;
  /** False as soon as it begins to end. */
  readonly isAlive: boolean;
  readonly exited: Promise<void>;
  /** Sends a user message, which begins a turn. */
  send(content: readonly PromptBlock[]): void;
  /** The next message; null after the end. */
  next(): Promise<SdkMessage | null>;
  /** Why the process ended, whether it had sent anything, and the limit it exceeded, if any. */
  ending(): { spoke: boolean; words: string; excess: TroupeError | null };
  /** Ends the process in at most two seconds, whatever it does. Its current turn may or may not be in the session. */
  stop(): Promise<void>;
}

interface ProcessOptions {
  sdk: AgentSdk;
  tools: ToolServer;
  options: Record<string, unknown>;
  /** Time until the first message. */
  startTimeoutMs: number;
  limits: ReplyLimits;
}

/** The process usually ends in about 70 ms, together with its own children. */
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
  const bounds = new OutputBounds(limits, (excess) => {
    end ||= excess.message;
    signalGroup(child, 'SIGKILL');
  });

  function spawnCli({ command, args, cwd, env }: SdkSpawn): SdkChild {
    // A separate process group, so that only Troupe handles a Ctrl-C in the terminal.
    const spawned = spawn(command, args, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    child = spawned;
    spawned.stderr.setEncoding('utf8');
    spawned.stderr.on('data', (text: string) => (stderr = (stderr + text).slice(-STDERR_LIMIT)));
    spawned.stdin.on('error', ignore);
    spawned.once('error', (error) => over(error.message));
    spawned.once('exit', (code, by) => over(by ? `it was ended by ${by}` : `it ended with code ${code}`));
    if (stopped) signalGroup(child, 'SIGKILL');
    return Object.assign(spawned, { stdout: spawned.stdout.pipe(bounds.transform()) });
  }

  function over(words: string): void {
    end ||= words;
    clearTimeout(starting);
    inbox.end();
    exited.resolve();
  }

  const messages = sdk
    .query({
      prompt: inbox,
      options: { ...options, mcpServers: tools.servers, spawnClaudeCodeProcess: spawnCli },
    })
    [Symbol.asyncIterator]();
  const starting = setTimeout(() => {
    end ||= `it said nothing for ${startTimeoutMs} ms`;
    signalGroup(child, 'SIGKILL');
  }, startTimeoutMs);

  return {
    tools,
    exited: exited.promise,
    get isAlive() {
      return end === '';
    },
    send(content) {
      bounds.received = 0;
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
        // The SDK throws for every error result, and when the process ends.
        end ||= error instanceof Error ? error.message : String(error);
        return null;
      }
    },
    ending: () => ({
      spoke,
      words: [end, stderr.trim()].filter((text) => text !== '').join(': '),
      excess: bounds.excess,
    }),
    async stop() {
      stopped = true;
      end ||= 'it was stopped';
      if (!child) return over(end);
      await endGroup(child, exited.promise);
    },
  };
}

async function endGroup(child: ChildProcess, exited: Promise<void>): Promise<void> {
  signalGroup(child, 'SIGTERM');
  const late = new AbortController();
  wait(STOP_MS, undefined, { signal: late.signal }).then(() => signalGroup(child, 'SIGKILL'), ignore);
  await exited;
  late.abort();
}

/** Bounds the output of the process: the SDK reads lines of any length and buffers what it has read. */
class OutputBounds {
  readonly #limits: ReplyLimits;
  readonly #onExcess: (excess: TroupeError) => void;
  /** Bytes of the current turn. */
  received = 0;
  excess: TroupeError | null = null;

  constructor(limits: ReplyLimits, onExcess: (excess: TroupeError) => void) {
    this.#limits = limits;
    this.#onExcess = onExcess;
  }

  transform(): Transform {
    const limits = this.#limits;
    const lines = new Cutter({
      of: 'lines',
      maxBytes: limits.eventBytes,
      tooLong: () => replyTooLong('eventBytes', limits),
    });
    return new Transform({
      transform: (piece: Buffer, _, done) => {
        if (this.excess) return done();
        try {
          this.received += piece.length;
          if (this.received > limits.receivedBytes) throw replyTooLong('receivedBytes', limits);
          const whole = lines.take(piece);
          done(null, whole ?? undefined);
        } catch (thrown) {
          this.excess = thrown as TroupeError;
          this.#onExcess(this.excess);
          done();
        }
      },
      flush: (done) => done(null, (this.excess ? null : lines.rest()) ?? undefined),
    });
  }
}

/** Writes to an ending process are lost; its end is reported elsewhere. */
function ignore(): void {}

/** A queue with one reader. */
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
