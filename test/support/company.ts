import type { AgentInput } from '../../src/library/config/agent-input.ts';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { Author, EventId } from '../../src/events/index.ts';
import type { OpenOptions } from '../../src/library/runtime/create-troupe.ts';
import {
  type FakeReply,
  type FakeRequest,
  startFakeOpenAi,
} from '../../packages/testing/src/fake-vendors.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import type { Tool } from '../../src/tools/tool.ts';
import { compact, type WireMessage } from './compact.ts';
import { openTroupe } from './mode.ts';

export const UMA: Author = { kind: 'user', id: 'u1', name: 'Uma' };
export const VIK: Author = { kind: 'user', id: 'v1', name: 'Vik' };

/** The human of imported transcripts. */
export const USER: Author = { kind: 'user', id: 'user', name: 'User' };

/** Answers of an agent: by the number of its request, or as a function of the request. */
type Answers = readonly (string | FakeReply)[] | ((request: FakeRequest) => FakeReply | Promise<FakeReply>);

export interface CompanyOptions extends OpenOptions {
  answers?: Record<string, Answers>;
  agents?: Record<string, Partial<AgentInput>>;
  tools?: Tool[];
  fallback?: string;
  /** More fields of the definition. */
  definition?: Partial<TroupeInput>;
}

export interface Company extends AsyncDisposable {
  troupe: Troupe;
  /** Posts a message and waits until all is quiet. Without `to`, the message has no addressee. */
  say(author: Author, to: string | string[] | null, content: string, more?: Said): Promise<void>;
  /** The same without waiting. */
  post(author: Author, to: string | string[] | null, content: string, more?: Said): Promise<unknown>;
  /**
   * Appends messages of an assistant and its users, given as OpenAI chat messages, with calls and results in any
   * order.
   */
  transcript(agent: string, messages: readonly unknown[]): Promise<void>;
  requests(agent: string): FakeRequest[];
  /**
   * The messages sent to an agent's model, without the system message: of the last request, or of number `n`, from 1.
   */
  raw(agent: string, n?: number): WireMessage[];
  /** The system message sent to an agent's model: of the last request, or of number `n`, from 1. */
  system(agent: string, n?: number): string;
  /** The same as compact lines, without reminders. */
  sent(agent: string, n?: number): string[];
  kinds(): Promise<string[]>;
}

interface Said {
  id?: string;
  replyTo?: string;
}

/** The one conversation of a company. */
export const ROOM = 'room';

/** A troupe on a fake vendor that records every request. The model of an agent has the agent's name. */
export async function company(ids: readonly string[], options: CompanyOptions = {}): Promise<Company> {
  const { answers = {}, agents = {}, tools = [], fallback, definition, ...runtime } = options;
  const counts = new Map<string, number>();
  const vendor = await startFakeOpenAi((request) => {
    const agent = modelOf(request);
    const number = (counts.get(agent) ?? 0) + 1;
    counts.set(agent, number);
    const answer = answers[agent];
    if (typeof answer === 'function') return answer(request);
    const reply = answer?.[number - 1] ?? `${agent} answers ${number}`;
    return typeof reply === 'string' ? { text: reply } : reply;
  });
  const troupe = await openTroupe(
    {
      agents: ids.map(
        (id) =>
          ({
            id,
            provider: 'openai-compatible',
            model: id,
            baseUrl: vendor.url,
            apiKeyEnv: 'KEY',
            ...agents[id],
          }) as AgentInput,
      ),
      tools,
      ...(fallback !== undefined && { defaults: { respondWhenUnaddressed: fallback } }),
      ...definition,
    },
    { env: { KEY: 'k' }, ...runtime },
  );
  const requests = (agent: string) => vendor.requests.filter((request) => modelOf(request) === agent);

  function all(agent: string, n = requests(agent).length): WireMessage[] {
    const request = requests(agent)[n - 1];
    if (!request) throw new Error(`@${agent} was asked ${requests(agent).length} times, not ${n}`);
    return (request.body as { messages: WireMessage[] }).messages;
  }

  const raw: Company['raw'] = (agent, n) => all(agent, n).slice(1);

  const post: Company['post'] = (author, to, content, { id, replyTo } = {}) =>
    troupe.send(ROOM, {
      author,
      content,
      ...(to !== null && { to: [to].flat() }),
      ...(id !== undefined && { id: id as EventId }),
      ...(replyTo !== undefined && { replyTo: replyTo as EventId }),
    });

  return {
    troupe,
    post,
    async say(...said) {
      await post(...said);
      await troupe.idle();
    },
    async transcript(agent, messages) {
      const text = JSON.stringify({ messages });
      await troupe.import(chunksOf(text), { agent, conversation: ROOM, format: 'openai' });
    },
    requests,
    raw,
    system: (agent, n) => String(all(agent, n)[0]?.content),
    sent: (agent, n) => raw(agent, n).map(compact),
    async kinds() {
      return (await troupe.events(ROOM)).events.map(({ kind }) => kind);
    },
    async [Symbol.asyncDispose]() {
      await troupe.close();
      await vendor.close();
    },
  };
}

function modelOf({ body }: FakeRequest): string {
  return (body as { model: string }).model;
}

export async function* chunksOf(text: string): AsyncGenerator<string> {
  yield text;
}

export function agentNamed(id: string): Author {
  return { kind: 'agent', id, name: id };
}
