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
  /** The agent's, where it is known: the signer is then first asked when there is something to sign. */
  pubkey: string | null;
  /** By which the signer knows whom it has let in: the same in every process, or it is new to the signer each time. Taken over. */
  clientKey: Uint8Array;
  clock: Clock;
  onWarning?: ((error: unknown, where: string) => void) | undefined;
  timeoutMs?: number;
}

const TIMEOUT_MS = 15_000;
const PUBKEY = /^[0-9a-f]{64}$/;

/**
 * Signs with a key on another machine, over a relay (NIP-46).
 *
 * Owns the connection.
 *  R1  Whatever does not answer in time is an error, and the next request connects anew.
 *  R2  What comes back is taken only if it is the very event that was asked for, by the agent's key.
 *  R3  No error holds the URL or what the signer said: both may hold secrets.
 * Throws `config_invalid` for a URL that is none, and where the pubkey must be asked for and nobody answers.
 */
export async function createRemoteSigner(options: RemoteSignerOptions): Promise<Signer> {
  const { agent, variable, clientKey, clock, timeoutMs = TIMEOUT_MS } = options;
  const { BunkerSigner } = await import('nostr-tools/nip46');
  const { SimplePool } = await import('nostr-tools/pool');
  const pointer = await readPointer(options);
  const pool = new SimplePool();
  const subscribe = pool.subscribe.bind(pool);
  // What it makes of an answer that cannot be read is a rejection that nobody would handle, which ends a process.
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
      asked.catch(() => undefined); // it may still fail when nobody waits any more
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
    // An answer that cannot be read is none: the request runs out of time.
  }
}

async function readPointer({ url, agent, variable }: RemoteSignerOptions): Promise<BunkerPointer> {
  const { parseBunkerInput, BUNKER_REGEX } = await import('nostr-tools/nip46');
  // Anything else would be looked up as a name, at a host of its own choice.
  const pointer = BUNKER_REGEX.test(url.trim()) ? await parseBunkerInput(url.trim()) : null;
  if (pointer && pointer.relays.length > 0) return pointer;
  const message = `${variable} is no bunker URL: it must be bunker://<pubkey>?relay=<wss://…>, with &secret=… if the signer shows one`;
  throw new TroupeError('config_invalid', message, { agent, variable });
}

/** The signature was checked by the caller of the relay; here that it is under what was asked for. */
function sameEvent(template: EventTemplate, pubkey: string, signed: SignedEvent, agent: string): SignedEvent {
  const { kind, created_at, tags, content } = template;
  const asked = { kind, created_at, tags, content, pubkey };
  const id = getEventHash(asked);
  if (signed.id === id && signed.pubkey === pubkey) return { id, ...asked, sig: signed.sig };
  const why = signed.pubkey === pubkey ? 'changed the event' : 'signed with another key';
  throw new Error(`the remote signer of @${agent} ${why}: nothing is published`);
}
