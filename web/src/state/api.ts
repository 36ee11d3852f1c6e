import type * as z from 'zod';
import type {
  CallerAnswer,
  RowsAnswer,
  SearchAnswer,
  SnapshotAnswer,
  TimesAnswer,
} from '../../../src/http/answers.ts';
import type { CostsAnswer } from '../../../src/http/costs.ts';
import type { Inbox } from '../../../src/http/inbox.ts';
import type {
  PromptDiff,
  SentPrompt,
  TurnComparison,
  TurnTrace,
  InspectedPrompt,
  ActorStatus,
  AgentInfo,
  BudgetLine,
  ErasureReceipt,
  QueueReport,
  StuckReport,
  TaskInfo,
} from '../../../src/library/troupe.ts';
import type { AgentId, Command, Event } from '../../../src/events/index.ts';
import type { Tree } from '../../../src/library/projection/tree.ts';
import type { Chart, Transitions } from '../../../src/library/projection/chart.ts';
import { base, renewWriteToken, serverToken, writeToken } from './settings.ts';
import { noteWrite } from './stream-place.ts';

/** The server's refusal in its own words. `code` is stable; `message` tells what to do. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly code: string;
  readonly data: Readonly<Record<string, unknown>>;

  constructor(status: number, code: string, message: string, data: Record<string, unknown> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.data = data;
  }
}

/** Whose key this is, and its rights. */
export type Caller = z.infer<typeof CallerAnswer>;

export type ErasureAsked = { person: string } | { conversation: string };

export interface InboxQuery {
  state?: string | undefined;
  agent?: string | undefined;
  owner?: string | undefined;
  from?: number | undefined;
  q?: string | undefined;
  order?: string | undefined;
  kind?: string | undefined;
  limit?: number | undefined;
  urgent?: number | undefined;
  after?: string | undefined;
}

export interface RowsQuery {
  before?: number | undefined;
  after?: number | undefined;
  limit?: number | undefined;
  agent?: string | undefined;
  kind?: string | undefined;
  not?: string | undefined;
  level?: string | undefined;
  turn?: string | undefined;
  q?: string | undefined;
}

export interface SearchQuery {
  q: string;
  author?: string | undefined;
  kind?: string | undefined;
  from?: number | undefined;
  after?: string | undefined;
}

export type Found = z.infer<typeof SearchAnswer>;

/** A route in the OpenAPI document of the server. */
export interface Operation {
  operationId: string;
  summary: string;
  'x-troupe-scopes'?: string[];
  parameters?: {
    name: string;
    in: string;
    required?: boolean;
    description?: string;
    schema: { type?: string; enum?: string[]; minimum?: number; maximum?: number; pattern?: string };
  }[];
  requestBody?: { content: Record<string, { schema: unknown; example?: unknown }> };
  responses: Record<string, { content?: Record<string, { schema?: unknown }> }>;
}
export interface OpenApi {
  /** By path, then by method. */
  paths: Record<string, Record<string, Operation>>;
}

export type Queues = QueueReport;

/** Most lines of stuck work that are marked in the list of conversations. */
const MOST_STUCK = 200;
/** More than a screen shows. The document requests the same address in advance: see `src/http/page/page.ts`. */
const NEWEST_EVENTS = 40;
const segment = encodeURIComponent;

/**
 * The HTTP API of this server; see `docs/reference/inspector.md`. Every method throws `ApiError`, or `TypeError` if the server
 * cannot be reached.
 */
export const api = {
  inbox: (query: InboxQuery) => get<Inbox>('api/inbox', { ...query }, SOON_MS),
  agents: () => get<{ agents: AgentInfo[] }>('api/agents'),
  snapshot: (conversation: string, at: number | null) =>
    get<z.infer<typeof SnapshotAnswer>>(`api/conversations/${segment(conversation)}/snapshot`, {
      at: at ?? undefined,
      events: at === null ? NEWEST_EVENTS : undefined,
    }),
  actors: (conversation: string) =>
    get<{ actors: ActorStatus[]; unaddressed: AgentId | null }>(
      `api/conversations/${segment(conversation)}/actors`,
    ),
  rows: (conversation: string, query: RowsQuery) =>
    get<z.infer<typeof RowsAnswer>>(`api/conversations/${segment(conversation)}/rows`, { ...query }),
  tree: (conversation: string) => get<Tree>(`api/conversations/${segment(conversation)}/tree`),
  times: (conversation: string, query: { after?: number; limit?: number; parts?: string }) =>
    get<z.infer<typeof TimesAnswer>>(`api/conversations/${segment(conversation)}/times`, { ...query }),
  events: (conversation: string, range: { after?: number; limit?: number }) =>
    get<{ events: Event[]; head: number }>(`api/conversations/${segment(conversation)}/events`, { ...range }),
  search: (query: SearchQuery) => get<Found>('api/search', { ...query }),
  trace: (turn: string) => get<TurnTrace>(`api/turns/${segment(turn)}`),
  prompt: (turn: string, step?: number) => get<SentPrompt>(`api/turns/${segment(turn)}/prompt`, { step }),
  nextPrompt: (conversation: string, agent: string) =>
    get<InspectedPrompt>(`api/conversations/${segment(conversation)}/agents/${segment(agent)}/prompt`),
  diff: (a: string, b: string, stepB?: number) =>
    get<PromptDiff>(`api/turns/${segment(a)}/diff/${segment(b)}`, { stepB }),
  compare: (a: string, b: string) => get<TurnComparison>(`api/turns/${segment(a)}/compare/${segment(b)}`),
  openApi: () => get<OpenApi>('api/openapi.json'),
  charts: () => get<{ charts: Record<string, Chart> }>('api/charts'),
  transitions: () => get<{ charts: Record<string, Transitions> }>('api/charts', { drawn: 'false' }),
  queues: () => get<Queues>('api/queues', {}, SOON_MS),
  stuck: () => get<StuckReport>('api/stuck', { limit: MOST_STUCK }, SOON_MS),
  budgets: (conversation: string) => get<{ budgets: BudgetLine[] }>('api/budgets', { conversation }),
  /** The open tasks, each with whether the user of the page may answer or decide it. */
  openTasks: async (conversation: string) => {
    const all: TaskInfo[] = [];
    for (let skip: number | null = 0; skip !== null;) {
      const part: { tasks: TaskInfo[]; next: number | null } = await get(
        `api/conversations/${segment(conversation)}/tasks`,
        { open: 'true', skip },
      );
      all.push(...part.tasks);
      skip = part.next;
    }
    return all;
  },
  /** Costs from the day of `from` on, ms since the epoch. */
  costs: (from: number) => get<CostsAnswer>('api/costs', { from }),
  allBudgets: () => get<{ budgets: BudgetLine[] }>('api/budgets'),
  command: (command: Command) => post<{ event: Event; seq: number }>('api/commands', command),
  send: async (conversation: string, message: { content: string; to?: string[]; whileBusy?: string }) => {
    const author = (await whoami()).author ?? OPERATOR;
    return post<{ event: Event }>(`api/conversations/${segment(conversation)}/events`, {
      author,
      ...message,
    });
  },
  whoami,
  /** Resolves when it is done, which takes as long as reading all logs. */
  erase: (subject: ErasureAsked) => post<ErasureReceipt>('api/erasures', subject, null),
  /** The bytes of an attachment, with the media type that the event names. */
  attachment: (conversation: string, { seq, index, type }: { seq: number; index: number; type: string }) =>
    bytes(`api/conversations/${segment(conversation)}/attachment?seq=${seq}&index=${index}`, type),
  /** The whole log, as lines to import or as a page to read. */
  exported: (conversation: string, format: 'jsonl' | 'html') =>
    bytes(
      `api/conversations/${segment(conversation)}/export?format=${format}`,
      format === 'html' ? 'text/html' : 'application/x-ndjson',
    ),
};

/** A key may be bound to one author; it then sends messages under that name only. */
let known: Promise<Caller> | null = null;
function whoami(): Promise<Caller> {
  known ??= get<Caller>('api/whoami');
  known.catch(() => (known = null));
  return known;
}

const OPERATOR = { kind: 'user', id: 'operator', name: 'Operator' };

export function headersFor(method: 'GET' | 'POST'): Record<string, string> {
  const token = serverToken();
  return {
    ...(token !== null && { authorization: `Bearer ${token}` }),
    ...(method === 'POST' && { 'content-type': 'application/json', 'x-troupe-token': writeToken() }),
  };
}

/** The stream of a conversation, from the event after the seq `after` on. Throws `ApiError`. */
export function streamOf(
  conversation: string,
  { after, signal }: { after: number; signal: AbortSignal },
): Promise<Response> {
  return openStream({ conversation, after: String(after) }, signal);
}

export async function openStream(query: Record<string, string>, signal: AbortSignal): Promise<Response> {
  const search = new URLSearchParams(query);
  const init = { headers: headersFor('GET'), signal };
  const response = await ask(`api/events?${search}`, init, ANSWERS_WITHIN_MS);
  if (!response.ok)
    throw new ApiError(response.status, 'stream_refused', `the server answered ${response.status}`);
  return response;
}

type Query = Record<string, string | number | undefined>;

/** How long a server may take to begin its answer, ms. Repeated reads and writes have the shorter `SOON_MS`. */
const ANSWERS_WITHIN_MS = 30_000;
const SOON_MS = 10_000;

async function get<T>(path: string, query: Query = {}, withinMs = ANSWERS_WITHIN_MS): Promise<T> {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  const init = { headers: headersFor('GET') };
  return read(await ask(`${path}${search && `?${search}`}`, init, withinMs));
}

/** `withinMs` null: no limit. */
async function post<T>(path: string, body: object, withinMs: number | null = SOON_MS): Promise<T> {
  const send = async () => {
    const init = { method: 'POST', headers: headersFor('POST'), body: JSON.stringify(body) };
    const answer = await read<T>(await ask(path, init, withinMs));
    noteWrite();
    return answer;
  };
  try {
    return await send();
  } catch (error) {
    // The server was restarted in the meantime.
    if (!(error instanceof ApiError) || error.code !== 'token_required' || !(await renewWriteToken()))
      throw error;
    return send();
  }
}

/** Throws `TypeError` with a readable message if the server cannot be reached, or does not begin to answer in time. */
async function ask(
  path: string,
  { signal, ...init }: RequestInit,
  withinMs: number | null,
): Promise<Response> {
  const tooLate = new AbortController();
  const timer = withinMs === null ? undefined : setTimeout(() => tooLate.abort(), withinMs);
  const ends = signal ? AbortSignal.any([signal, tooLate.signal]) : tooLate.signal;
  try {
    return await fetch(`${base}${path}`, { ...init, signal: ends });
  } catch (cause) {
    if (signal?.aborted) throw cause;
    if (!tooLate.signal.aborted) throw new TypeError('the server cannot be reached', { cause });
    const late = `the server has not answered for ${(withinMs ?? 0) / 1_000} s`;
    const words = init.method === 'POST' ? `${late}; whether it has done this is not known` : late;
    throw new TypeError(words, { cause });
  } finally {
    clearTimeout(timer);
  }
}

async function bytes(path: string, type: string): Promise<Blob> {
  const response = await ask(path, { headers: headersFor('GET') }, ANSWERS_WITHIN_MS);
  if (!response.ok) throw errorOf(response, await response.text());
  return new Blob([await response.arrayBuffer()], { type });
}

async function read<T>(response: Response): Promise<T> {
  if (response.ok) return (await response.json()) as T;
  const text = await response.text();
  throw errorOf(response, text);
}

function errorOf({ status, statusText }: Response, text: string): ApiError {
  try {
    const { error } = JSON.parse(text) as {
      error: { code: string; message: string; data?: Record<string, unknown> };
    };
    return new ApiError(status, error.code, error.message, error.data);
  } catch {
    // Something between the browser and Troupe sent the answer.
    return new ApiError(status, 'not_troupe', `the server answered ${status} ${statusText}`);
  }
}
