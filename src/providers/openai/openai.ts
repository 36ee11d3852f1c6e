import { guardedStream, type StreamWatch } from '../guard-stream.ts';
import { type ModelEvent, type ModelRequest, type Provider, STATELESS } from '../provider.ts';
import { type ReplyLimitSettings, replyLimits } from '../reply-limits.ts';
import { serverOf } from '../vendor-fetch.ts';
import { readResponseEvents, type ResponseEvent, responsesBody } from './responses.ts';
import { openAiClient } from './client.ts';
import { quirksOf, toolRules } from './quirks.ts';
import { toolProblem } from '../fit-tools.ts';
import { NO_EXTRAS, type RequestExtras } from '../request-settings.ts';
import { givenOf, type Sampling } from '../sampling.ts';

interface OpenAiOptions {
  /** Default https://api.openai.com/v1. */
  baseUrl?: string;
  apiKey: string;
  /** Limits of the size and duration of an answer. */
  replyLimits?: ReplyLimitSettings;
  sampling?: Pick<Sampling, 'temperature' | 'topP'>;
  extras?: RequestExtras;
}

const NAME = 'openai';
/** Special tokens of its models. */
const MARKS = ['tokens'] as const;

/** OpenAI's Responses API, without its memory: the log is the memory. */
export function createOpenAi(options: OpenAiOptions): Provider {
  const { baseUrl = 'https://api.openai.com/v1', apiKey, sampling = {}, extras = NO_EXTRAS } = options;
  const sampled = givenOf({
    temperature: sampling.temperature,
    top_p: sampling.topP,
    reasoning: reasoningOf(extras),
  });
  const quirks = quirksOf(baseUrl);
  const tools = toolRules(quirks);
  const limits = replyLimits(options.replyLimits);
  const client = openAiClient({ apiKey, baseUrl, limits, headers: extras.headers });

  async function* read(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    const body = { ...responsesBody(request, NAME, quirks), ...extras.body, ...sampled };
    const events = await client.stream<ResponseEvent>('/responses', body, watch.signal);
    watch.touch();
    yield* readResponseEvents(events, { request, provider: NAME, callIds: quirks.callIds }, watch);
  }

  return {
    name: NAME,
    capabilities: { ...STATELESS, interleavedSystem: true, images: true, templateMarks: MARKS },
    server: serverOf(baseUrl),
    ...(tools && { toolProblem: (tool) => toolProblem(tool, tools) }),
    stream: guardedStream({
      name: NAME,
      limits,
      secrets: [apiKey, ...extras.secrets],
      templateMarks: MARKS,
      tools,
      read,
    }),
  };
}

function reasoningOf({ effort, body }: RequestExtras): object | undefined {
  return effort && { effort, ...(body['reasoning'] as object) };
}
