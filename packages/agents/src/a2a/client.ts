import { createPublicKey, type JsonWebKey, type KeyObject, verify } from 'node:crypto';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import * as z from 'zod';
import { TroupeError, tryParse, type VendorFetch, canonicalJson } from '../troupe.ts';

interface ClientOptions {
  /** URL of the agent card, or of the server that has the card at `/.well-known/agent-card.json`. */
  url: string;
  apiKey?: string | undefined;
  cardKeys?: readonly CardKey[] | undefined;
  fetch: VendorFetch;
}

/** A remote agent, as its card describes it. */
export interface RemoteAgent {
  streams: boolean;
  /** Whether it accepts parts of this type. */
  takes: (mediaType: string) => boolean;
  call(method: string, params: object, signal: AbortSignal): Promise<unknown>;
  /** Resolves to the stream of results once the server has accepted the request. */
  stream(method: string, params: object, signal: AbortSignal): Promise<AsyncIterable<unknown>>;
}

const WELL_KNOWN = '/.well-known/agent-card.json';
const TASK_NOT_FOUND = -32_001;
/** Codes for invalid requests, unknown methods and parameters, and operations that the remote agent does not support. */
const CALLERS_FAULT = [-32_600, -32_601, -32_602, -32_003, -32_004, -32_005, -32_009];

/** Reads the card. Throws a TroupeError, or an error of `fetch`. */
export async function findRemote(options: ClientOptions, signal: AbortSignal): Promise<RemoteAgent> {
  const { url, apiKey, cardKeys, fetch } = options;
  const headers = {
    'content-type': 'application/json',
    'a2a-version': '1.0',
    ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
  };
  const at = url.endsWith('.json') ? url : `${url.replace(/\/$/, '')}${WELL_KNOWN}`;
  const response = await fetch(at, { headers, signal });
  const given: unknown = JSON.parse(await textOf(response));
  const card = read(Card, given, 'the agent card');
  if (cardKeys) verifyCard(given, cardKeys, at);
  const endpoint = endpointOf(card, at);

  async function post(method: string, params: object, abort: AbortSignal): Promise<Response> {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const answer = await fetch(endpoint, { method: 'POST', headers, body, signal: abort });
    if (!answer.ok) await textOf(answer);
    return answer;
  }

  return {
    streams: card.capabilities.streaming,
    takes: (mediaType) => takes(card.defaultInputModes, mediaType),
    call: async (method, params, abort) =>
      resultOf(JSON.parse(await textOf(await post(method, params, abort)))),
    async stream(method, params, abort) {
      const answer = await post(method, params, abort);
      // A refusal comes as plain JSON.
      if (answer.headers.get('content-type')?.startsWith('text/event-stream')) return resultsOf(answer);
      return [resultOf(JSON.parse(await textOf(answer)))] as unknown as AsyncIterable<unknown>;
    },
  };
}

/** The URL of the JSON-RPC endpoint. It must have the card's origin, because it gets the key and the prompts. */
function endpointOf({ supportedInterfaces }: Card, at: string): string {
  const found = supportedInterfaces.find(
    ({ protocolBinding, protocolVersion }) =>
      protocolBinding === 'JSONRPC' && protocolVersion.startsWith('1.'),
  );
  if (!found)
    throw new TroupeError('provider_invalid_request', 'the agent card has no JSONRPC interface of version 1');
  if (new URL(found.url).origin !== new URL(at).origin) {
    const message = `the agent card at ${new URL(at).origin} names an interface at ${new URL(found.url).origin}: only the same origin is used`;
    throw new TroupeError('provider_redirected', message);
  }
  return found.url;
}

/** A card that names no types accepts any. */
function takes(modes: readonly string[], mediaType: string): boolean {
  const [family] = mediaType.split('/');
  return modes.length === 0 || [mediaType, `${family}/*`, '*/*', '*'].some((mode) => modes.includes(mode));
}

async function textOf(response: Response): Promise<string> {
  const text = await response.text();
  if (response.ok) return text;
  const { status, headers } = response;
  throw Object.assign(new Error(text.trim() || 'the answer has no body'), { status, headers });
}

async function* resultsOf(response: Response): AsyncGenerator<unknown> {
  if (!response.body) return;
  const messages = response.body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  for await (const { data } of messages) yield resultOf(JSON.parse(data));
}

function resultOf(body: unknown): unknown {
  const { result, error } = read(RpcAnswer, body, 'the answer');
  if (!error) return result;
  const message = `the remote agent refused: ${error.message} (${error.code})`;
  if (error.code === TASK_NOT_FOUND) throw new TroupeError('provider_session_lost', message);
  const fault = CALLERS_FAULT.includes(error.code) ? 'provider_invalid_request' : 'provider_failed';
  throw new TroupeError(fault, message);
}

/** Throws `provider_invalid_reply`. */
export function read<T>(shape: z.ZodType<T>, value: unknown, what: string): T {
  const { data, error } = tryParse(shape, value);
  if (error)
    throw new TroupeError('provider_invalid_reply', `${what} is not A2A 1.0: ${z.prettifyError(error)}`);
  return data;
}

/** A public key as a JSON Web Key, with its type in `kty` and perhaps its id in `kid`. */
export type CardKey = Readonly<Record<string, unknown>>;

/** How a signature of each algorithm is verified. A key fits only the algorithms of its own type. */
const ALGORITHMS: Readonly<Record<string, { type: string; curve?: string; hash: string | null }>> = {
  ES256: { type: 'ec', curve: 'prime256v1', hash: 'sha256' },
  ES384: { type: 'ec', curve: 'secp384r1', hash: 'sha384' },
  RS256: { type: 'rsa', hash: 'sha256' },
  EdDSA: { type: 'ed25519', hash: null },
};

const Header = z.object({ alg: z.string(), kid: z.string().optional() });
const Signatures = z.array(z.object({ protected: z.string(), signature: z.string() })).max(20);

function keyOf(jwk: object): KeyObject | null {
  try {
    return createPublicKey({ key: jwk as JsonWebKey, format: 'jwk' });
  } catch {
    return null; // The key has the right shape, but its numbers are invalid.
  }
}

/** Throws `provider_unverified` unless one of the keys has signed the card. */
function verifyCard(card: unknown, keys: readonly CardKey[], at: string): void {
  const { signatures, ...signed } = Object(card) as Record<string, unknown>;
  const given = tryParse(Signatures, signatures ?? []);
  const list = given.success ? given.data : [];
  // Signers leave out empty values, even those that the card has.
  const payloads = [signed, withoutEmpty(signed)].map(canonicalJson);
  const isSigned = list.some((each) =>
    payloads.some((payload) => keys.some((key) => isBy(each, payload, key))),
  );
  if (isSigned) return;
  const why = list.length === 0 ? 'is not signed' : 'is not signed by a key of cardKeys';
  throw new TroupeError('provider_unverified', `the agent card at ${at} ${why}: nothing is sent there`);
}

function isBy(
  { protected: header, signature }: z.infer<typeof Signatures>[number],
  payload: string,
  jwk: CardKey,
): boolean {
  const named = headerIn(header);
  const algorithm = named && ALGORITHMS[named.alg];
  const key = keyOf(jwk);
  if (!algorithm || !key || key.asymmetricKeyType !== algorithm.type) return false;
  if (algorithm.curve !== undefined && key.asymmetricKeyDetails?.namedCurve !== algorithm.curve) return false;
  if (named.kid !== undefined && jwk['kid'] !== undefined && named.kid !== jwk['kid']) return false;
  const data = Buffer.from(`${header}.${Buffer.from(payload).toString('base64url')}`);
  return verify(
    algorithm.hash,
    data,
    { key, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  );
}

function headerIn(text: string): z.infer<typeof Header> | null {
  try {
    const found = tryParse(Header, JSON.parse(Buffer.from(text, 'base64url').toString()));
    return found.success ? found.data : null;
  } catch {
    return null; // Not JSON, so it is not a signature that we can read.
  }
}

function withoutEmpty(value: unknown): unknown {
  if (value === '' || value === null) return undefined;
  if (typeof value !== 'object') return value;
  if (Array.isArray(value)) {
    const kept = value.map(withoutEmpty).filter((each) => each !== undefined);
    return kept.length > 0 ? kept : undefined;
  }
  const kept = Object.entries(value as object).flatMap(([name, each]) => {
    const left = withoutEmpty(each);
    return left === undefined ? [] : [[name, left] as const];
  });
  return kept.length > 0 ? Object.fromEntries(kept) : undefined;
}

/** The parts of A2A 1.0 that Troupe reads, under A2A's own field names. */

const MAX_PARTS = 1_000;
/** Levels of an answer above its free-form data. */
const MAX_LEVELS = 10;
/** Fields in which null is a value. */
const FREE = new Set(['data', 'metadata']);

/** Null means absent, as in all JSON of Protocol Buffers (https://protobuf.dev/programming-guides/json/). */
function withoutNulls(value: unknown, levels = MAX_LEVELS): unknown {
  if (typeof value !== 'object' || value === null || levels === 0) return value;
  if (Array.isArray(value))
    return value.filter((item) => item !== null).map((item) => withoutNulls(item, levels - 1));
  const kept = Object.entries(value).filter(([, item]) => item !== null);
  return Object.fromEntries(
    kept.map(([key, item]) => [key, FREE.has(key) ? item : withoutNulls(item, levels - 1)]),
  );
}

const answer = <S extends z.ZodType>(shape: S) => z.preprocess((given) => withoutNulls(given), shape);

const UNREADABLE = '[a part that cannot be read]';
const Part = z.object({
  text: z.string().optional(),
  data: z.unknown().optional(),
  raw: z.string().optional(),
  url: z.string().optional(),
  filename: z.string().optional(),
  mediaType: z.string().optional(),
});
/** A part that cannot be read is replaced by a note; the others are kept. */
const Parts = z
  .array(Part.catch({ text: UNREADABLE }))
  .max(MAX_PARTS)
  .default([]);

const Message = z.object({ parts: Parts, contextId: z.string().optional() });
const Artifact = z.object({ artifactId: z.string().default(''), parts: Parts });
export type Artifact = z.infer<typeof Artifact>;
const Status = z.object({ state: z.string(), message: Message.optional() });
export type Status = z.infer<typeof Status>;

const PlainTask = z.object({
  id: z.string().min(1),
  contextId: z.string().default(''),
  status: Status,
  artifacts: z
    .array(Artifact.catch({ artifactId: '', parts: [{ text: UNREADABLE }] }))
    .max(MAX_PARTS)
    .default([]),
});
export const Task = answer(PlainTask);
export type Task = z.infer<typeof Task>;

/** One event of a stream, or the answer to `SendMessage`: exactly one of its fields is set. */
export const StreamAnswer = answer(
  z.object({
    task: PlainTask.optional(),
    message: Message.optional(),
    statusUpdate: z
      .object({ taskId: z.string(), contextId: z.string().default(''), status: Status })
      .optional(),
    artifactUpdate: z
      .object({
        taskId: z.string(),
        contextId: z.string().default(''),
        artifact: Artifact,
        append: z.boolean().default(false),
      })
      .optional(),
  }),
);
export type StreamAnswer = z.infer<typeof StreamAnswer>;

const RpcAnswer = answer(
  z.object({
    result: z.unknown().optional(),
    error: z
      .object({ code: z.coerce.number(), message: z.string().default('it gives no reason') })
      .optional(),
  }),
);

const Interface = z.object({ url: z.url(), protocolBinding: z.string(), protocolVersion: z.string() });

const Card = answer(
  z.object({
    // Interfaces that cannot be read are for other clients.
    supportedInterfaces: z
      .array(z.unknown())
      .max(100)
      .transform((given) => given.flatMap((each) => tryParse(Interface, each).data ?? [])),
    defaultInputModes: z.array(z.string()).max(1_000).default([]),
    capabilities: z.object({ streaming: z.boolean().default(false) }).prefault({}),
  }),
);
type Card = z.infer<typeof Card>;

/** The parts as one text. Files are named, and data is JSON. */
export function textOfParts(parts: readonly z.infer<typeof Part>[]): string {
  return parts.map(textOfPart).join('');
}

function textOfPart({
  text,
  data,
  raw,
  url,
  filename = 'without a name',
  mediaType,
}: z.infer<typeof Part>): string {
  if (text !== undefined) return text;
  if (data !== undefined) return JSON.stringify(data);
  if (raw === undefined && url === undefined) return '';
  return `[file ${filename}${mediaType === undefined ? '' : `, ${mediaType}`}]`;
}
