import { setImmediate as turnOfTheLoop } from 'node:timers/promises';
import type { Hono } from 'hono';
import { Event } from '../../src/events/index.ts';
import { createApp } from '../../src/http/api/index.ts';
import { DOORS } from '../../src/library/integrations/door.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { checkLog } from '../../packages/testing/src/check-log.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { Broken, type Target } from '../target.ts';
import { makeRequest, type RequestInput } from './make-request.ts';

/**
 * The HTTP app of a troupe of scripted agents, in this process.
 * R1  Every answer is below 500, and from 400 on has the form `{error: {code, message, data}}`.
 * R2  Nothing is reported to the operator as an error of ours.
 * R3  The logs satisfy `checkLog`, every entry in them is a valid event, and prompts can be rendered from them.
 */
export interface RoutesOptions {
  /** Wraps the app, for tests of this target. */
  wrap?: (app: Hono) => { fetch(request: Request): Response | Promise<Response> };
}

/** Requests to one troupe. Then it is checked and replaced, so that it does not get ever slower. */
const REQUESTS_EACH = 1_500;
const LOOKED_AT = 40;
const READ_BYTES = 262_144;

export function routesTarget({ wrap = (app) => app }: RoutesOptions = {}): Target<RequestInput> {
  let server: Server | null = null;
  return {
    name: 'routes',
    make: makeRequest,
    async run(input) {
      if (server && server.requests >= REQUESTS_EACH) {
        const old = server;
        server = null;
        await finish(old);
      }
      server ??= await startServer(wrap);
      server.requests += 1;
      return await ask(server, input);
    },
    async check() {
      if (server) await checkServer(server);
    },
    async close() {
      await server?.troupe.close();
      server = null;
    },
  };
}

interface Server {
  troupe: Troupe;
  app: { fetch(request: Request): Response | Promise<Response> };
  errors: unknown[];
  requests: number;
  /** Conversations with imported events, whose covers and seqs come from their file. */
  imported: Set<string>;
}

async function startServer(wrap: NonNullable<RoutesOptions['wrap']>): Promise<Server> {
  const agents = ['echo', 'other'].map((id) => ({
    id,
    name: id,
    provider: 'scripted' as const,
    model: 'test',
    script: { rules: [{ reply: 'answer {{n}}' }] },
  }));
  const troupe = await createTroupe({ agents, doors: DOORS }, { onWarning: () => undefined });
  const errors: unknown[] = [];
  const app = createApp(troupe, { onError: (error) => errors.push(error) });
  // The objects that the paths of requests name.
  for (const text of ['hello', 'and again'])
    await troupe.send('c1', { author: { kind: 'user', id: 'u', name: 'Uma' }, content: text, to: ['echo'] });
  await troupe.idle();
  return { troupe, app: wrap(app), errors, requests: 0, imported: new Set() };
}

async function finish(server: Server): Promise<void> {
  try {
    await checkServer(server);
  } finally {
    await server.troupe.close();
  }
}

async function ask({ app, errors, imported }: Server, input: RequestInput): Promise<string> {
  const request = requestOf(input);
  if (request === null) return 'not a request';
  const response = await app.fetch(request);
  const { status } = response;
  const type = response.headers.get('content-type') ?? '';
  if (type.startsWith('text/event-stream')) {
    await response.body?.cancel();
    await turnOfTheLoop();
    return `${status} stream`;
  }
  const text = await readSome(response);
  const [error] = errors.splice(0);
  if (error !== undefined) throw new Broken(`reported: ${messageOf(error)}`, '500');
  if (status >= 500) throw new Broken(`${status}: ${text.slice(0, 300)}`, '500');
  // The page tells of a path that leads nowhere by itself.
  const isPage = status === 404 && input.method === 'GET' && type.startsWith('text/html');
  if (status >= 400 && input.method !== 'HEAD' && !isPage) checkShape(status, text);
  if (status === 201 && input.path.startsWith('/api/import')) {
    for (const id of (JSON.parse(text) as { conversations: string[] }).conversations) imported.add(id);
  }
  return status < 400 ? 'accepted' : codeOf(text, status);
}

function messageOf(error: unknown): string {
  return error instanceof Error
    ? (error.stack ?? error.message).split('\n').slice(0, 6).join('\n')
    : String(error);
}

/** Null for a request that no client can send. */
function requestOf({ method, path, headers, body, bytes }: RequestInput): Request | null {
  try {
    const given = method === 'GET' || method === 'HEAD' || body === null ? null : Buffer.from(body, bytes);
    return new Request(`http://127.0.0.1${path.startsWith('/') ? path : `/${path}`}`, {
      method,
      headers,
      ...(given && { body: given }),
    });
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

async function readSome(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk as Uint8Array);
    size += (chunk as Uint8Array).byteLength;
    if (size > READ_BYTES) break;
  }
  return Buffer.concat(chunks).toString();
}

function checkShape(status: number, text: string): void {
  const { error } = (text.startsWith('{') ? JSON.parse(text) : {}) as { error?: Record<string, unknown> };
  const isOurs =
    typeof error?.['code'] === 'string' &&
    typeof error['message'] === 'string' &&
    typeof error['data'] === 'object';
  if (!isOurs) throw new Broken(`a ${status} without our error: ${text.slice(0, 200)}`);
}

function codeOf(text: string, status: number): string {
  return /"code":"(\w+)"/.exec(text)?.[1] ?? String(status);
}

async function checkServer({ troupe, imported }: Server): Promise<void> {
  await troupe.idle();
  const all = await troupe.conversations();
  for (const { id } of all.slice(0, LOOKED_AT)) {
    const { events } = await troupe.events(id, { after: 0, limit: 5_000 });
    const bad = events.find((event) => !Event.safeParse(event).success);
    if (bad) throw new Broken(`event ${bad.seq} of ${id} is none`);
    const [violation] = imported.has(id) ? [] : checkLog(events, [], { quiet: false });
    if (violation) throw new Broken(`${violation.invariant} ${violation.conversation}: ${violation.problem}`);
    for (const agent of ['echo', 'other']) await troupe.prompt(id, agent);
  }
}
