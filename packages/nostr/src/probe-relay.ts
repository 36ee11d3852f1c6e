import { finalizeEvent, generateSecretKey } from 'nostr-tools/pure';
import { makeAuthEvent } from 'nostr-tools/nip42';
import { WebSocket } from 'ws';
import * as z from 'zod';
import {
  type Clock,
  type RelayAnswer as Answer,
  type RelayInformation as Information,
  type RelayReport,
  TroupeError,
} from './troupe.ts';
import { shownRelay } from './settings.ts';

const RelayInformation = z.object({
  name: z.string().optional().catch(undefined),
  software: z.string().optional().catch(undefined),
  version: z.string().optional().catch(undefined),
  supported_nips: z
    .array(z.union([z.number(), z.string()]))
    .optional()
    .catch(undefined),
  limitation: z.record(z.string(), z.unknown()).optional().catch(undefined),
});

/** A kind that relays do not store. */
const EPHEMERAL = 20_001;
const MAX_INFORMATION_CHARS = 65_536;
const MAX_FRAME_BYTES = 262_144;

/**
 * Connects to a relay, reads an event and publishes one under a throwaway key. Throws `config_invalid` if the URL is not a
 * relay's, and `address_unreachable` if nothing answers there.
 */
export async function probeRelay(
  url: string,
  { clock, timeoutMs = 10_000 }: { clock: Clock; timeoutMs?: number },
): Promise<RelayReport> {
  const shown = shownRelay(url);
  if (!/^wss?:\/\//.test(url) || !URL.canParse(url)) {
    const message = `${shown} is not the URL of a relay: it must begin with wss:// or ws://`;
    throw new TroupeError('config_invalid', message, { url: shown });
  }
  const key = generateSecretKey();
  const since = clock.monotonic();
  const socket = new WebSocket(url, { handshakeTimeout: timeoutMs, maxPayload: MAX_FRAME_BYTES });
  // A challenge may follow the handshake at once, so the listener is set up first.
  const talk = new Talk(socket, clock, timeoutMs);
  try {
    await opened(socket, shown);
    const connectMs = clock.monotonic() - since;
    const request = ['REQ', 'troupe-test', { kinds: [1], limit: 1 }];
    const note = sign({ kind: EPHEMERAL, tags: [], content: 'troupe nostr test' }, key, clock);
    // Some relays acknowledge only events that they store. An echo of the event also proves that it was accepted.
    const echo = ['REQ', 'troupe-echo', { kinds: [EPHEMERAL], authors: [note.pubkey] }];
    const ask = async () => ({
      read: await talk.ask(request, (frame) => endOf(frame, 'troupe-test')),
      write: await talk.ask(['EVENT', note], (frame) => okOf(frame, note.id) ?? echoOf(frame, note.id), echo),
    });
    let answers = await ask();
    const wantsAuth = [answers.read, answers.write].some(({ reason }) => reason.startsWith('auth-required:'));
    if (wantsAuth && talk.challenge !== null) {
      const { kind, tags, content } = makeAuthEvent(url, talk.challenge);
      const auth = sign({ kind, tags, content }, key, clock);
      await talk.ask(['AUTH', auth], (frame) => okOf(frame, auth.id));
      answers = await ask();
    }
    return {
      url: shown,
      connectMs,
      information: await askInformation(url, timeoutMs),
      ...answers,
      auth: wantsAuth ? 'required' : talk.challenge === null ? 'none' : 'offered',
    };
  } finally {
    key.fill(0);
    socket.terminate();
  }
}

type Frame = readonly unknown[];
type Verdict = Omit<Answer, 'ms'>;

class Talk {
  challenge: string | null = null;
  readonly #socket: WebSocket;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  #hear: (frame: Frame) => void = () => {};

  constructor(socket: WebSocket, clock: Clock, timeoutMs: number) {
    this.#socket = socket;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    socket.on('error', () => {}); // followed by `close`
    socket.on('message', (data) => {
      const frame = parse(String(data as Buffer));
      if (frame[0] === 'AUTH' && typeof frame[1] === 'string') this.challenge = frame[1];
      this.#hear(frame);
    });
  }

  /** `first`: a frame to send first, without waiting for its answer. */
  async ask(frame: Frame, verdictOf: (frame: Frame) => Verdict | null, first?: Frame): Promise<Answer> {
    const since = this.#clock.monotonic();
    const over = new AbortController();
    const verdict = await new Promise<Verdict>((resolve) => {
      this.#hear = (answer) => {
        const found = verdictOf(answer);
        if (found) resolve(found);
      };
      const closed = () => resolve({ ok: false, reason: 'it closed the connection' });
      this.#socket.once('close', closed);
      if (this.#socket.readyState !== WebSocket.OPEN) closed();
      for (const each of first ? [first, frame] : [frame]) this.#socket.send(JSON.stringify(each), () => {}); // a failure closes it
      void this.#clock
        .sleep(this.#timeoutMs, over.signal)
        .then(() => resolve({ ok: false, isSilent: true, reason: `no answer within ${this.#timeoutMs} ms` }));
    });
    over.abort();
    return { ...verdict, ms: this.#clock.monotonic() - since };
  }
}

function opened(socket: WebSocket, url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', (cause: NodeJS.ErrnoException) => {
      const why =
        cause.code === 'ECONNREFUSED' ? 'nothing listens there' : cause.message || String(cause.code);
      const message = `the relay ${url} cannot be reached: ${why}`;
      reject(new TroupeError('address_unreachable', message, { url }, { cause }));
    });
  });
}

function endOf([type, name, reason]: Frame, wanted: string): Verdict | null {
  if (name !== wanted) return null;
  if (type === 'EOSE') return { ok: true, reason: '' };
  return type === 'CLOSED' ? { ok: false, reason: shortened(reason) } : null;
}

function okOf([type, id, accepted, reason]: Frame, wanted: string): Verdict | null {
  if (type !== 'OK' || id !== wanted) return null;
  return { ok: accepted === true, reason: shortened(reason) };
}

function echoOf([type, name, event]: Frame, wanted: string): Verdict | null {
  if (type !== 'EVENT' || name !== 'troupe-echo') return null;
  const isOurs = typeof event === 'object' && event !== null && 'id' in event && event.id === wanted;
  return isOurs ? { ok: true, reason: '' } : null;
}

function shortened(reason: unknown): string {
  return typeof reason === 'string' ? reason.slice(0, 300) : '';
}

function parse(text: string): Frame {
  try {
    const frame: unknown = JSON.parse(text);
    return Array.isArray(frame) ? (frame as unknown[]) : [];
  } catch {
    // An invalid frame is ignored.
    return [];
  }
}

function sign(event: { kind: number; tags: string[][]; content: string }, key: Uint8Array, clock: Clock) {
  const { id, pubkey, created_at, kind, tags, content, sig } = finalizeEvent(
    { ...event, created_at: Math.floor(clock.now() / 1_000) },
    key,
  );
  return { id, pubkey, created_at, kind, tags, content, sig };
}

/** Null if the relay has no valid description of itself. Many have none. */
async function askInformation(url: string, timeoutMs: number): Promise<Information | null> {
  try {
    const response = await fetch(url.replace(/^ws/, 'http'), {
      headers: { accept: 'application/nostr+json' },
      redirect: 'error',
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (!response.ok) return null;
    const text = await readSome(response);
    return RelayInformation.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

async function readSome({ body }: Response): Promise<string> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (text.length > MAX_INFORMATION_CHARS) throw new Error('too long');
  }
  return text;
}
