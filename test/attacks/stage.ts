import { expect } from 'vitest';
import { type NewKey, SCOPES } from '../../src/library/access/index.ts';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import type { Author, Event, EventOf } from '../../src/events/index.ts';
import { type AppOptions, createApp, serveHttp } from '../../src/http/api/index.ts';
import { DOORS } from '../../src/library/integrations/door.ts';
import type { OpenOptions } from '../../src/library/runtime/create-troupe.ts';
import {
  startFakeOpenAi,
  type FakeReply,
  type FakeRequest,
  type FakeServer,
} from '../../packages/testing/src/fake-vendors.ts';
import type { Tool } from '../../src/tools/tool.ts';
import type { NewMessage, Troupe } from '../../src/library/troupe.ts';
import { openTroupe } from '../support/mode.ts';

export const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };
export const EVE: Author = { kind: 'user', id: 'eve', name: 'Eve' };
export const ACME = 'acme';
export const ZETA = 'zeta';

/** A request to a model, with the name of the agent. */
export interface Asked {
  agent: string;
  /** Number among all requests, from 1. */
  number: number;
  /** Text of the last user or tool message. */
  last: string;
  messages: readonly SentMessage[];
}

export interface SentMessage {
  role: string;
  content: string;
  tool_call_id?: string;
}

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  /** Empty for a body that is not JSON. */
  body: Record<string, unknown> & { error?: { code: string; message: string; data: unknown } };
}

export interface Request {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
}

/** A company on a vendor that records its requests, behind a server on a real socket. */
export interface AttackStage extends AsyncDisposable {
  troupe: Troupe;
  vendor: FakeServer;
  url: string;
  /** Errors that the server reported to its operator: 500s. */
  errors: unknown[];
  warnings: string[];
  ask: (path: string, request?: Request) => Promise<Answer>;
  /** Sends a message over HTTP, and waits until all work is done. */
  say(conversation: string, content: string, more?: Partial<NewMessage>): Promise<Answer>;
  command(body: object): Promise<Answer>;
  /** Messages of this agent's requests, as the vendor got them. */
  sentBy(agent: string): SentMessage[][];
  events(conversation: string): Promise<Event[]>;
  /** Everything that an attack could change. */
  state(): Promise<unknown>;
}

export interface StageOptions {
  agents?: readonly (string | (Partial<AgentInput> & { id: string }))[];
  tools?: Tool[];
  answer?: (asked: Asked) => FakeReply | Promise<FakeReply>;
  company?: Partial<TroupeInput>;
  troupe?: OpenOptions;
  app?: AppOptions;
  /** Wraps the troupe behind the server. */
  wrap?: (troupe: Troupe) => Troupe;
  /** True if every request needs a credential of the troupe. */
  guarded?: boolean;
  /** Opens the troupe; by default in the mode of the tests. */
  open?: (input: TroupeInput, options: OpenOptions) => Promise<Troupe>;
}

export const VENDOR_KEY = 'key-of-the-vendor';
const READ_ALL = { limit: 5_000 };

export async function openStage(options: StageOptions = {}): Promise<AttackStage> {
  const { agents = ['bo', 'cy'], tools = [], answer = () => ({ text: 'fine' }), open = openTroupe } = options;
  const vendor = await startFakeOpenAi((request) => answer(askedBy(request)));
  const company = {
    agents: agents.map((agent) => agentOn(vendor.url, agent)),
    tools,
    doors: DOORS,
    ...options.company,
  } as TroupeInput;
  const warnings: string[] = [];
  const troupe = await open(company, {
    env: { KEY: VENDOR_KEY },
    onWarning: (error, where) => void warnings.push(`${where}: ${String(error)}`),
    ...options.troupe,
  });
  const errors: unknown[] = [];
  const ending = new AbortController();
  const app = createApp(options.wrap?.(troupe) ?? troupe, {
    onError: (error) => errors.push(error),
    signal: ending.signal,
    ...(options.guarded === true && {
      keyless: 'refused',
      authenticate: (credential) => troupe.authenticate(credential),
    }),
    ...options.app,
  });
  const server = await serveHttp(app, { port: 0 });
  const tenants = [troupe, troupe.forTenant(ACME), troupe.forTenant(ZETA)];

  const stage: AttackStage = {
    troupe,
    vendor,
    url: server.url,
    errors,
    warnings,
    ask: (path, request) => askServer(server.url, path, request),
    async say(conversation, content, more = {}) {
      const body = { author: ANA, content, ...more };
      const answered = await stage.ask(`/api/conversations/${conversation}/events`, { body });
      await troupe.idle();
      return answered;
    },
    command: (body) => stage.ask('/api/commands', { body }),
    sentBy: (agent) =>
      vendor.requests.flatMap(({ body }) =>
        modelOf(body) === agent ? [(body as { messages: SentMessage[] }).messages.map(plain)] : [],
      ),
    events: async (conversation) => (await troupe.events(conversation, READ_ALL)).events,
    async state() {
      const worlds = await Promise.all(tenants.map((each) => worldOf(each)));
      return { worlds, asked: vendor.requests.length, errors: errors.length };
    },
    async [Symbol.asyncDispose]() {
      ending.abort();
      await server.close();
      await vendor.close();
      await troupe.close();
    },
  };
  return stage;
}

export type Asker = (path: string, request?: Request) => Promise<Answer>;

/** Sends requests with a new key of this tenant; by default one with all scopes. */
export async function withKey(
  { troupe, url }: Pick<AttackStage, 'troupe' | 'url'>,
  tenant: string,
  key: Partial<NewKey> = {},
): Promise<Asker & { id: string; headers: Record<string, string> }> {
  const given = { name: 'k', scopes: [...SCOPES], ...key };
  const { key: issued, secret } = await troupe.forTenant(tenant).keys.create(given);
  const headers = { authorization: `Bearer ${secret}` };
  const ask: Asker = (path, request = {}) =>
    askServer(url, path, { ...request, headers: { ...headers, ...request.headers } });
  return Object.assign(ask, { id: issued.id, headers });
}

/** Runs an attack that must not change anything. */
export async function unchanged<T>(stage: AttackStage, run: () => Promise<T>): Promise<T> {
  const before = await stage.state();
  const result = await run();
  await stage.troupe.idle();
  expect(await stage.state()).toEqual(before);
  return result;
}

export async function askServer(url: string, path: string, request: Request = {}): Promise<Answer> {
  const { body, headers, method = body === undefined ? 'GET' : 'POST' } = request;
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false;
  const parsed = isJson ? (JSON.parse(text) as Answer['body']) : {};
  return { status: response.status, headers: response.headers, text, body: parsed };
}

/** For example `404 conversation_unknown`. */
export function statusOf({ status, body }: Answer): string {
  return body.error ? `${status} ${body.error.code}` : `${status}`;
}

export function only<K extends Event['kind']>(events: readonly Event[], kind: K): EventOf<K>[] {
  return events.filter((event) => event.kind === kind) as EventOf<K>[];
}

export function shownIn(messages: readonly SentMessage[] | undefined): string {
  return (messages ?? []).map(({ content }) => content).join('\n');
}

async function worldOf(troupe: Troupe): Promise<unknown> {
  const conversations = await troupe.conversations();
  const actors = await Promise.all(conversations.map(({ id }) => troupe.actors(id)));
  const events = await Promise.all(conversations.map(({ id }) => troupe.events(id, READ_ALL)));
  const [budgets, keys] = [await troupe.budgets(), await troupe.keys.list()];
  return { conversations, actors, events, budgets, keys };
}

function agentOn(baseUrl: string, agent: NonNullable<StageOptions['agents']>[number]): unknown {
  const { id, ...more } = typeof agent === 'string' ? { id: agent } : agent;
  const vendor = { provider: 'openai-compatible', model: id, baseUrl, apiKeyEnv: 'KEY' };
  return { id, name: id, ...vendor, contextWindow: 128_000, ...more };
}

function askedBy({ number, body }: FakeRequest): Asked {
  const messages = (body as { messages: SentMessage[] }).messages.map(plain);
  const last = messages.findLast(({ role }) => role === 'user' || role === 'tool');
  return { agent: modelOf(body), number, last: last?.content ?? '', messages };
}

function modelOf(body: unknown): string {
  return (body as { model: string }).model;
}

/** Joins content in parts into one text. */
function plain(message: SentMessage): SentMessage {
  const { content } = message as { content: unknown };
  const text = Array.isArray(content)
    ? content.map((part) => (part as { text?: string }).text ?? '').join('')
    : ((content as string | null) ?? '');
  return { ...message, content: text };
}
