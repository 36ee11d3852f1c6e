import { BUNKER_REGEX, type BunkerPointer, BunkerSigner, parseBunkerInput } from 'nostr-tools/nip46';
import { SimplePool } from 'nostr-tools/pool';
import { getEventHash } from 'nostr-tools/pure';
import { type Clock, TroupeError } from './troupe.ts';
import type { SignedEvent } from './nostr-event.ts';
import type { EventTemplate, Signer } from './signer.ts';

interface RemoteSignerOptions {
  /** `bunker://<pubkey>?relay=…&secret=…`, as the signer shows it. */
  url: string;
  /** Named in error messages, like `variable`. The URL itself is never shown, because it contains a secret. */
  agent: string;
  /** The environment variable with the URL. */
  variable: string;
  /** The agent's pubkey, if known: the signer is then not contacted before the first signature. */
  pubkey: string | null;
  /** Identifies this client to the signer. A new key may need approval again. The created `Signer` owns the key and erases it. */
  clientKey: Uint8Array;
  clock: Clock;
  onWarning?: ((error: unknown, where: string) => void) | undefined;
  timeoutMs?: number;
}

const TIMEOUT_MS = 15_000;
const PUBKEY = /^[0-9a-f]{64}$/;

/**
 * Signs with a key on another machine, over a relay (NIP-46). Owns the connection.
 *  R1  A request that times out is an error; the next request connects again.
 *  R2  A signature is accepted only for exactly the requested event, under the agent's key.
 *  R3  No error contains the URL or a message of the signer: both may hold secrets.
 * Throws `config_invalid` if the URL is invalid, or if the pubkey is not known and the signer does not answer.
 */
export async function createRemoteSigner(options: RemoteSignerOptions): Promise<Signer> {
  const bunker = new Bunker(options, await readPointer(options));
  const pubkey = options.pubkey ?? (await askPubkey(bunker, options));
  return {
    pubkey,
    async sign(template) {
      const signed = await bunker.ask('sign_event', (signer) => signer.signEvent({ ...template }));
      return sameEvent(template, pubkey, signed, options.agent);
    },
    close: () => bunker.close(),
  };
}

async function askPubkey(bunker: Bunker, { agent, variable }: RemoteSignerOptions): Promise<string> {
  try {
    const pubkey = await bunker.ask('get_public_key', (signer) => signer.getPublicKey());
    if (PUBKEY.test(pubkey)) return pubkey;
    throw new Error(`the remote signer of @${agent} returned no pubkey`);
  } catch (error) {
    await bunker.close();
    const why = error instanceof Error ? error.message : 'it did not answer';
    const message = `${why}; see ${variable}, or give @${agent} its pubkey in the agents file to start without the signer`;
    throw new TroupeError('config_invalid', message, { agent, variable });
  }
}

/** A connection to a remote signer, opened by the first request and by the next request after a failure. */
class Bunker {
  readonly #options: RemoteSignerOptions;
  readonly #pointer: BunkerPointer;
  readonly #pool = new SimplePool();
  #signer: BunkerSigner | null = null;
  #connecting: Promise<BunkerSigner> | null = null;
  #isClosed = false;

  constructor(options: RemoteSignerOptions, pointer: BunkerPointer) {
    this.#options = options;
    this.#pointer = pointer;
    const subscribe = this.#pool.subscribe.bind(this.#pool);
    // An unreadable answer makes its handler reject; if that were unhandled, the process would end.
    this.#pool.subscribe = (relays, filter, params) =>
      subscribe(relays, filter, { ...params, onevent: (event) => void readSafely(params.onevent, event) });
  }

  async ask<T>(what: string, request: (signer: BunkerSigner) => Promise<T>): Promise<T> {
    return this.#inTime(what, request(await this.#connected()));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#signer?.close();
    this.#signer = null;
    this.#pool.close(this.#pointer.relays);
    this.#options.clientKey.fill(0);
  }

  async #connected(): Promise<BunkerSigner> {
    if (this.#isClosed) throw new Error('this signer is closed');
    if (this.#signer) return this.#signer;
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = null));
    return (this.#signer = await this.#connecting);
  }

  async #connect(): Promise<BunkerSigner> {
    const { agent, clientKey, onWarning } = this.#options;
    const pointer = { ...this.#pointer, relays: [...this.#pointer.relays] };
    const onauth = (url: string) => {
      const message = `the remote signer of @${agent} waits for your approval at ${url.slice(0, 300)}`;
      onWarning?.(new Error(message), 'nostr');
    };
    const signer = BunkerSigner.fromBunker(clientKey, pointer, { pool: this.#pool, onauth });
    try {
      await this.#inTime('connect', signer.connect());
      return signer;
    } catch (error) {
      void signer.close();
      throw error;
    }
  }

  async #inTime<T>(what: string, asked: Promise<T>): Promise<T> {
    const { agent, clock, timeoutMs = TIMEOUT_MS } = this.#options;
    const over = new AbortController();
    const late = clock.sleep(timeoutMs, over.signal).then(() => 'late' as const);
    try {
      const first = await Promise.race([asked.then((value) => ({ value })), late]);
      if (first !== 'late') return first.value;
      throw new Error(`the remote signer of @${agent} did not answer within ${timeoutMs} ms (${what})`);
    } catch (error) {
      const lost = this.#signer;
      this.#signer = null;
      void lost?.close();
      if (error instanceof Error && error.message.startsWith('the remote signer')) throw error;
      throw new Error(`the remote signer of @${agent} refused or cannot be reached (${what})`);
    } finally {
      over.abort();
      asked.catch(() => undefined); // it may still fail after the timeout
    }
  }
}

async function readSafely<T>(read: ((event: T) => unknown) | undefined, event: T): Promise<void> {
  try {
    await read?.(event);
  } catch {
    // An unreadable answer is ignored: the request times out.
  }
}

async function readPointer({ url, agent, variable }: RemoteSignerOptions): Promise<BunkerPointer> {
  // nostr-tools would resolve any other text as a name, at a host that the text itself chooses.
  const pointer = BUNKER_REGEX.test(url.trim()) ? await parseBunkerInput(url.trim()) : null;
  if (pointer && pointer.relays.length > 0) return pointer;
  const message = `${variable} is not a bunker URL: it must be bunker://<pubkey>?relay=<wss://…>, with &secret=… if the signer shows one`;
  throw new TroupeError('config_invalid', message, { agent, variable });
}

/** Checks that the signer signed exactly the requested event. The relay pool has verified the signature. */
function sameEvent(template: EventTemplate, pubkey: string, signed: SignedEvent, agent: string): SignedEvent {
  const { kind, created_at, tags, content } = template;
  const asked = { kind, created_at, tags, content, pubkey };
  const id = getEventHash(asked);
  if (signed.id === id && signed.pubkey === pubkey) return { id, ...asked, sig: signed.sig };
  const why = signed.pubkey === pubkey ? 'changed the event' : 'signed with another key';
  throw new Error(`the remote signer of @${agent} ${why}: nothing is published`);
}
