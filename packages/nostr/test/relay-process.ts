import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** What a relay's process is told, each answered once. */
export type RelayCommand =
  /** Frames that clients have sent, oldest first, of one kind where named; the newest 1,000 are kept. */
  | { do: 'seen'; kind?: string }
  /** How many clients are connected. */
  | { do: 'clients' }
  /** Cuts all connections. */
  | { do: 'drop' }
  /** Cuts all connections and takes no new ones, until `up` at the same port with the same events. */
  | { do: 'down' }
  | { do: 'up' }
  /** Answers nothing, pings included, until called off; what clients send is read and kept waiting. */
  | { do: 'stall'; stalled: boolean }
  /** Of a hostile relay: how it behaves from now on; what is left out stays. */
  | { do: 'behave'; how: Behaviour }
  /** Of a hostile relay: sends these frames, as they are, to all clients. `$sub` in them is each subscription's id. */
  | { do: 'push'; frames: string[] };

export interface Behaviour {
  /** Texts of events, sent to every REQ in this order, whatever it asked for. */
  stored?: string[];
  /** How often each of them is sent. Default 1. */
  times?: number;
  /** Whether EOSE follows. Default true. */
  eose?: boolean;
  /** Sent to every subscription at full speed, for ever, after its REQ; `$sub` is the subscription's id. */
  flood?: string | null;
  /** What is said of published events; null: nothing. */
  ok?: { accepted: boolean; reason: string } | null;
  /** Passes events on to whoever has sent them. */
  echo?: boolean;
  /** What becomes of longer frames: a notice, the end of the connection with code 1009, or its end without a word. */
  longest?: { chars: number; otherwise: 'notice' | 'close' | 'cut' } | null;
  /** Closes the connection after so many frames were sent on it. */
  dropAfter?: number | null;
}

export interface RelayOptions {
  /** Answers nothing before a client has authenticated (NIP-42). */
  auth?: boolean;
  /** Before each answer. */
  latencyMs?: number;
  /** Default: a free one. */
  port?: number;
}

export interface RelayProcess extends AsyncDisposable {
  /** `ws://127.0.0.1:PORT`. */
  url: string;
  ask(command: RelayCommand): Promise<unknown>;
  /** The frames that clients have sent, parsed. */
  seen(kind?: string): Promise<unknown[][]>;
  close(): Promise<void>;
}

/** A real relay (@nostr-relay over SQLite in memory) in a process of its own. */
export function startRelay(options: RelayOptions = {}): Promise<RelayProcess> {
  return start('./relay-main.ts', options);
}

/** A relay that keeps to nothing: it sends what it is told to. In a process of its own. */
export async function startHostileRelay(behaviour: Behaviour = {}): Promise<RelayProcess> {
  const relay = await start('./hostile-main.ts', {});
  await relay.ask({ do: 'behave', how: behaviour });
  return relay;
}

async function start(script: string, options: RelayOptions): Promise<RelayProcess> {
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
  return {
    url,
    ask,
    seen: async (kind) => (await ask({ do: 'seen', ...(kind !== undefined && { kind }) })) as unknown[][],
    close,
    [Symbol.asyncDispose]: close,
  };
}
