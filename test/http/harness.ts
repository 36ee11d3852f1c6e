import type { Hono } from 'hono';
import type { TroupeInput } from '../../src/library/config/agents-file.ts';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import { createApp, type AppOptions } from '../../src/http/api/index.ts';
import { DOORS } from '../../src/library/integrations/door.ts';
import type { OpenOptions } from '../../src/library/runtime/create-troupe.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { checkAnswers } from '../support/check-answers.ts';
import { openTroupe } from '../support/mode.ts';

export const ANA = { kind: 'user', id: 'u1', name: 'Ana' } as const;

type Rules = Extract<Extract<AgentInput, { provider: 'scripted' }>['script'], object>['rules'];

export function scripted(id: string, rules: Rules): AgentInput {
  return { id, name: id, provider: 'scripted', model: 'test', script: { rules } };
}

export const ECHO = scripted('echo', [{ reply: 'answer {{n}}', chunk: 3 }]);
export const OTHER = scripted('other', [{ reply: 'other answer {{n}}' }]);

export interface Harness extends AsyncDisposable {
  troupe: Troupe;
  app: Hono;
  /** Errors that the server reported to its operator. */
  errors: unknown[];
  get(path: string, init?: RequestInit): Promise<Answer>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
}

export interface Answer {
  status: number;
  headers: Headers;
  /** Parsed JSON; tests look into it by path. */
  body: Record<string, unknown>;
}

export async function startApi(
  options: AppOptions & {
    agents?: AgentInput[];
    /** The whole input of the troupe, instead of only its agents. */
    company?: TroupeInput;
    troupe?: OpenOptions;
    wrap?: (troupe: Troupe) => Troupe;
  } = {},
): Promise<Harness> {
  const { agents = [ECHO, OTHER], company = { agents }, ...others } = options;
  const { troupe: troupeOptions, wrap = (troupe) => troupe, ...appOptions } = others;
  const troupe = await openTroupe({ doors: DOORS, ...company }, { onWarning: () => {}, ...troupeOptions });
  const errors: unknown[] = [];
  const app = createApp(wrap(troupe), { onError: (error) => errors.push(error), ...appOptions });
  checkAnswers(app);
  async function ask(path: string, init?: RequestInit): Promise<Answer> {
    const response = await app.request(path, init);
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: parse(text) };
  }
  return {
    troupe,
    app,
    errors,
    get: (path, init) => ask(path, init),
    post: (path, body, headers) =>
      ask(path, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        headers: { 'content-type': 'application/json', ...headers },
      }),
    [Symbol.asyncDispose]: () => troupe.close(),
  };
}

function parse(text: string): Record<string, unknown> {
  return text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : { text };
}

export interface StreamFrame {
  event: string;
  id: string | null;
  data: Record<string, unknown>;
}

/** Reads server-sent events until `enough` returns true, then cancels the stream. */
export async function readStream(
  response: Response,
  enough: (frames: StreamFrame[]) => boolean,
): Promise<StreamFrame[]> {
  const frames: StreamFrame[] = [];
  const decoder = new TextDecoder();
  let text = '';
  if (!response.body) throw new Error('no stream');
  const reader = response.body.getReader();
  while (!enough(frames)) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value as Uint8Array, { stream: true });
    const parts = text.split('\n\n');
    text = parts.pop() ?? '';
    frames.push(...parts.flatMap(parseFrame));
  }
  await reader.cancel();
  return frames;
}

function parseFrame(text: string): StreamFrame[] {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(text)?.[1] ?? null;
  const data = field('data');
  return data === null
    ? []
    : [
        {
          event: field('event') ?? 'message',
          id: field('id'),
          data: JSON.parse(data) as Record<string, unknown>,
        },
      ];
}
