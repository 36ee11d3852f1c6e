import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Commands to a relay, each answered once. */
export type RelayCommand =
  /** The last 1,000 frames of clients, oldest first; of one kind if given. */
  | { do: 'seen'; kind?: string }
  /** Number of connected clients. */
  | { do: 'clients' }
  /** Closes all connections. */
  | { do: 'drop' }
  /** Closes all connections and accepts none until `up`, at the same port with the same events. */
  | { do: 'down' }
  | { do: 'up' }
  /** Answers nothing, not even pings, until it is switched off; frames of clients wait. */
  | { do: 'stall'; stalled: boolean }
  /** For a hostile relay: changes its behaviour. */
  | { do: 'behave'; how: Behaviour }
  /** For a hostile relay: sends these frames to all clients. `$sub` becomes the id of each subscription. */
  | { do: 'push'; frames: string[] };

export interface Behaviour {
  /** JSON of events, sent in this order to every REQ, whatever it requests. */
  stored?: string[];
  /** How often each of them is sent. Default 1. */
  times?: number;
  /** EOSE follows. Default true. */
  eose?: boolean;
  /** Sent to every subscription at full speed, forever, after its REQ. `$sub` becomes its id. */
  flood?: string | null;
  /** The answer to published events; null: none. */
  ok?: { accepted: boolean; reason: string } | null;
  /** Sends events back to their sender. */
  echo?: boolean;
  /** The reaction to longer frames: a notice, a close with code 1009, or a close without a code. */
  longest?: { chars: number; otherwise: 'notice' | 'close' | 'cut' } | null;
  /** Closes a connection after it has sent this many frames. */
  dropAfter?: number | null;
}

export interface RelayOptions {
  /** Answers nothing before a client has authenticated (NIP-42). */
  auth?: boolean;
  /** Delay of each answer. */
  latencyMs?: number;
  /** Default: a free port. */
  port?: number;
}

export interface TestRelay extends AsyncDisposable {
  /** `ws://127.0.0.1:PORT`. */
  url: string;
  ask: (command: RelayCommand) => Promise<unknown>;
  /** The parsed frames of clients. */
  seen(kind?: string): Promise<unknown[][]>;
  close: () => Promise<void>;
}

/** The relay of `startRelay` in a separate process: for loads, so that its work is not taken for the gateway's. */
export function startRelayProcess(options: RelayOptions = {}): Promise<TestRelay> {
  return start('./relay-main.ts', options);
}

/** A relay that ignores the protocol and sends what a test asks for, in a separate process. */
export async function startHostileRelay(behaviour: Behaviour = {}): Promise<TestRelay> {
  const relay = await start('./hostile-main.ts', {});
  await relay.ask({ do: 'behave', how: behaviour });
  return relay;
}

async function start(script: string, options: RelayOptions): Promise<TestRelay> {
  const child = fork(fileURLToPath(new URL(script, import.meta.url)), [JSON.stringify(options)], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const waiting = new Map<number, (answer: unknown) => void>();
  let asked = 0;
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the relay ended with code ${code}`)));
    child.on('message', (message: { url?: string; answer?: unknown; to?: number }) => {
      if (message.url !== undefined) resolve(message.url);
      if (message.to === undefined) return;
      waiting.get(message.to)?.(message.answer);
      waiting.delete(message.to);
    });
  });
  function ask(command: RelayCommand): Promise<unknown> {
    asked += 1;
    const number = asked;
    return new Promise((resolve) => {
      waiting.set(number, resolve);
      child.send({ number, command });
    });
  }
  function close(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
    return new Promise((resolve) => {
      child.once('exit', () => resolve());
      child.kill('SIGKILL');
    });
  }
  return testRelay({ url, ask, close });
}

export function testRelay({ url, ask, close }: Pick<TestRelay, 'url' | 'ask' | 'close'>): TestRelay {
  return {
    url,
    ask,
    seen: async (kind) => (await ask({ do: 'seen', ...(kind !== undefined && { kind }) })) as unknown[][],
    close,
    [Symbol.asyncDispose]: close,
  };
}
