import * as z from 'zod';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import type { Answer } from '../../src/library/troupe.ts';
import type { AiSdkModel } from '../../src/providers/ai-sdk-model.ts';
import {
  sse,
  type FakeReply,
  type FakeRequest,
  startFakeAnthropic,
  startFakeOpenAi,
  startFakeOpenAiResponses,
} from '../../packages/testing/src/fake-vendors.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { openTroupe } from './mode.ts';

export type Wire = 'chat' | 'responses' | 'messages';
/** Frames as a server sends them. A text is sent as it is. */
export type Frames = readonly (object | string)[];

const SERVERS = {
  chat: { start: startFakeOpenAi, provider: 'openai-compatible' },
  responses: { start: startFakeOpenAiResponses, provider: 'openai' },
  messages: { start: startFakeAnthropic, provider: 'anthropic' },
} as const;

export interface Asked {
  answer: Answer;
  /** The arguments that tools ran with, in order. */
  ran: unknown[];
  requests: FakeRequest[];
  /** What the last request said, as JSON. */
  lastRequest: string;
}

function raw(frames: Frames): FakeReply {
  const body = frames
    .map((frame) => {
      if (typeof frame === 'string') return frame;
      return sse(frame, 'type' in frame && typeof frame.type === 'string' ? frame.type : undefined);
    })
    .join('');
  return { raw: { status: 200, headers: { 'content-type': 'text/event-stream' }, body } };
}

function cleaning() {
  const ran: unknown[] = [];
  const clean = (name: string) =>
    defineTool({
      name,
      description: 'Deletes files; all of them without `only`.',
      schema: z.looseObject({}),
      run(args) {
        ran.push(args);
        return 'deleted';
      },
    });
  return { ran, tools: [clean('clean'), clean('list')] };
}

/** Asks an agent with the tools `clean` and `list` of a server that answers with these frames, one list per request, then `Done.` */
export async function askOver(
  wire: Wire,
  answers: readonly Frames[],
  agent: Partial<AgentInput> = {},
): Promise<Asked> {
  const { start, provider } = SERVERS[wire];
  await using server = await start(({ number }) => {
    const frames = answers[number - 1];
    return frames ? raw(frames) : { text: 'Done.' };
  });
  const { ran, tools } = cleaning();
  const settings = { id: 'bo', provider, baseUrl: server.url, model: 'm', contextWindow: 100_000 };
  const bo = { ...settings, tools: ['clean', 'list'], ...agent } as AgentInput;
  const env = { ANTHROPIC_API_KEY: 'k', OPENAI_API_KEY: 'k' };
  await using troupe = await openTroupe({ agents: [bo], tools }, { env, onWarning: () => undefined });
  const answer = await troupe.ask('c', 'Clean up /tmp/x.');
  const { requests } = server;
  return { answer, ran, requests, lastRequest: JSON.stringify(requests.at(-1)?.body) };
}

/** The same with a model of the AI SDK, which gives these parts. */
export async function askAiSdk(answers: readonly (readonly object[])[]): Promise<Asked> {
  const asked: object[] = [];
  const model = {
    specificationVersion: 'v4',
    provider: 'mine.chat',
    modelId: 'm',
    supportedUrls: {},
    doStream(options: { prompt: object }) {
      asked.push(options.prompt);
      const parts = answers[asked.length - 1] ?? [
        { type: 'text-start', id: 't' },
        { type: 'text-delta', id: 't', delta: 'Done.' },
        ended('stop'),
      ];
      return Promise.resolve({ stream: ReadableStream.from(parts) });
    },
  } as unknown as AiSdkModel;
  const { ran, tools } = cleaning();
  const bo = { id: 'bo', provider: 'ai-sdk', model, contextWindow: 100_000, tools: ['clean', 'list'] };
  await using troupe = await openTroupe(
    { agents: [bo as AgentInput], tools },
    { onWarning: () => undefined },
  );
  const answer = await troupe.ask('c', 'Clean up /tmp/x.');
  return { answer, ran, requests: [], lastRequest: JSON.stringify(asked.at(-1)) };
}

/** The end of an answer of the AI SDK. */
export function ended(unified: string, rawReason = unified): object {
  const usage = { inputTokens: { total: 50 }, outputTokens: { total: 9 } };
  return { type: 'finish', finishReason: { unified, raw: rawReason }, usage };
}

export function chunk(delta: object | null, finish: string | null = null, more: object = {}): object {
  return { id: 'c1', choices: [{ index: 0, delta, finish_reason: finish, ...more }] };
}

/** The chunks of an answer of chat completions with these fragments of calls, each in a chunk of its own. */
export function chatCalls(fragments: readonly unknown[], finish = 'tool_calls'): Frames {
  return [
    chunk({ role: 'assistant', content: null }),
    ...fragments.map((each) => chunk({ tool_calls: Array.isArray(each) ? each : [each] })),
    chunk({}, finish),
    sse('[DONE]'),
  ];
}

/** The events of an answer of Anthropic with these blocks: each its start, and its pieces of input. */
export function blocks(
  given: readonly { index?: number; block: object; pieces?: readonly unknown[] }[],
  stop = 'tool_use',
): Frames {
  return [
    { type: 'message_start', message: { id: 'msg_1', model: 'm', usage: { input_tokens: 50 } } },
    ...given.flatMap(({ index, block, pieces = [] }, at) => [
      { type: 'content_block_start', index: index ?? at, content_block: block },
      ...pieces.map((partial_json) => ({
        type: 'content_block_delta',
        index: index ?? at,
        delta: { type: 'input_json_delta', partial_json },
      })),
      { type: 'content_block_stop', index: index ?? at },
    ]),
    { type: 'message_delta', delta: { stop_reason: stop }, usage: { output_tokens: 9 } },
    { type: 'message_stop' },
  ];
}

/** The events of a response with these items, each `[added, done]` with the events in between. */
export function items(given: readonly object[], end: object = {}): Frames {
  const response = { id: 'r', model: 'm', status: 'completed', output: [], ...end };
  const { status } = response;
  const type = status === 'incomplete' ? 'response.incomplete' : 'response.completed';
  return [...given, { type, response }];
}
