import { getEventHash } from 'nostr-tools/pure';
import type { BunkerPointer, BunkerSigner } from 'nostr-tools/nip46';
import { type Clock, TroupeError } from './troupe.ts';
import type { SignedEvent } from './nostr-event.ts';
import type { EventTemplate, Signer } from './signer.ts';

export interface RemoteSignerOptions {
  /** `bunker://<pubkey>?relay=…&secret=…`, as the signer shows it. */
  url: string;
  /** For errors: `@agent`, and where the URL came from. The URL is never shown, since it holds a secret. */
  agent: string;
  variable: string;
  /** The agent's pubkey, if known: the signer is then not contacted before the first signature. */
  pubkey: string | null;
  /** Identifies this client to the signer. A new key may need approval again. The signer owns and erases it. */
  clientKey: Uint8Array;
  clock: Clock;
  onWarning?: ((error: unknown, where: string) => void) | undefined;
  timeoutMs?: number;
}

const TIMEOUT_MS = 15_000;
const PUBKEY = /^[0-9a-f]{64}$/;

/**
 * Signs with a key on another machine, over a relay (NIP-46). Owns the connection.
 *  R1  A request without an answer in time is an error, and the next request connects anew.
 *  R2  A signature is accepted only for exactly the requested event, under the agent's key.
 *  R3  No error contains the URL or a message of the signer: both may hold secrets.
 * Throws `config_invalid` if the URL is invalid, or if the pubkey is not known and the signer does not answer.
 */
export async function createRemoteSigner(options: RemoteSignerOptions): Promise<Signer> {
  const { agent, variable, clientKey, clock, timeoutMs = TIMEOUT_MS } = options;
  const { BunkerSigner } = await import('nostr-tools/nip46');
  const { SimplePool } = await import('nostr-tools/pool');
  const pointer = await readPointer(options);
  const pool = new SimplePool();
  const subscribe = pool.subscribe.bind(pool);
  // An unreadable answer makes its handler reject; unhandled, that would end the process.
  pool.subscribe = (relays, filter, params) =>
    subscribe(relays, filter, { ...params, onevent: (event) => void readSafely(params.onevent, event) });
  let bunker: BunkerSigner | null = null;
  let connecting: Promise<BunkerSigner> | null = null;
  let isClosed = false;

  async function inTime<T>(what: string, asked: Promise<T>): Promise<T> {
    const over = new AbortController();
    const late = clock.sleep(timeoutMs, over.signal).then(() => 'late' as const);
    try {
      const first = await Promise.race([asked.then((value) => ({ value })), late]);
      if (first !== 'late') return first.value;
      throw new Error(`the remote signer of @${agent} did not answer within ${timeoutMs} ms (${what})`);
    } catch (error) {
      const lost = bunker;
      bunker = null;
      void lost?.close();
      if (error instanceof Error && error.message.startsWith('the remote signer')) throw error;
      throw new Error(`the remote signer of @${agent} refused or cannot be reached (${what})`);
    } finally {
      over.abort();
      asked.catch(() => undefined); // it may fail after the timeout
    }
  }

  async function connect(): Promise<BunkerSigner> {
    const at = { ...pointer, relays: [...pointer.relays] };
    const opened = BunkerSigner.fromBunker(clientKey, at, { pool, onauth });
    try {
      await inTime('connect', opened.connect());
      return opened;
    } catch (error) {
      void opened.close();
      throw error;
    }
  }

  function onauth(at: string): void {
    options.onWarning?.(
      new Error(`the remote signer of @${agent} waits for you at ${at.slice(0, 300)}`),
      'nostr',
    );
  }

  async function connected(): Promise<BunkerSigner> {
    if (isClosed) throw new Error('this signer is closed');
    if (bunker) return bunker;
    connecting ??= connect().finally(() => (connecting = null));
    return (bunker = await connecting);
  }

  async function ask<T>(what: string, request: (signer: BunkerSigner) => Promise<T>): Promise<T> {
    return inTime(what, request(await connected()));
  }

  async function close(): Promise<void> {
    isClosed = true;
    await bunker?.close();
    bunker = null;
    pool.close(pointer.relays);
    clientKey.fill(0);
  }

  const pubkey = options.pubkey ?? (await askPubkey());
  async function askPubkey(): Promise<string> {
    try {
      const told = await ask('get_public_key', (signer) => signer.getPublicKey());
      if (PUBKEY.test(told)) return told;
      throw new Error(`the remote signer of @${agent} told no pubkey`);
    } catch (error) {
      await close();
      const why = error instanceof Error ? error.message : 'it did not answer';
      const message = `${why}; see ${variable}, or give @${agent} its pubkey in the agents file to start without asking`;
      throw new TroupeError('config_invalid', message, { agent, variable });
    }
  }

  return {
    pubkey,
    async sign(template) {
      const signed = await ask('sign_event', (signer) => signer.signEvent({ ...template }));
      return sameEvent(template, pubkey, signed, agent);
    },
    close,
  };
}

async function readSafely<T>(read: ((event: T) => unknown) | undefined, event: T): Promise<void> {
  try {
    await read?.(event);
  } catch {
    // An unreadable answer is ignored: the request times out.
  }
}

async function readPointer({ url, agent, variable }: RemoteSignerOptions): Promise<BunkerPointer> {
  const { parseBunkerInput, BUNKER_REGEX } = await import('nostr-tools/nip46');
  // Any other text would be looked up as a name, at a host of its choice.
  const pointer = BUNKER_REGEX.test(url.trim()) ? await parseBunkerInput(url.trim()) : null;
  if (pointer && pointer.relays.length > 0) return pointer;
  const message = `${variable} is no bunker URL: it must be bunker://<pubkey>?relay=<wss://…>, with &secret=… if the signer shows one`;
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
