import { guardedStream, type StreamWatch } from '../guard-stream.ts';
import { type ModelEvent, type ModelRequest, type Provider, STATELESS } from '../provider.ts';
import { type ReplyLimitSettings, replyLimits } from '../reply-limits.ts';
import { serverOf, vendorFetch } from '../vendor-fetch.ts';
import { readResponseEvents, type ResponseEvent, responsesBody } from './responses.ts';
import { openAiClient } from './client.ts';
import { quirksOf } from './quirks.ts';
import { givenOf, type Sampling } from '../sampling.ts';

interface OpenAiOptions {
  /** Default https://api.openai.com/v1. */
  baseUrl?: string;
  apiKey: string;
  /** Limits of the size and duration of an answer. */
  replyLimits?: ReplyLimitSettings;
  sampling?: Pick<Sampling, 'temperature' | 'topP'>;
}

const NAME = 'openai';
/** Special tokens of its models. */
const MARKS = ['tokens'] as const;

/** OpenAI's Responses API, without its memory: the log is the memory. */
export function createOpenAi(options: OpenAiOptions): Provider {
  const { baseUrl = 'https://api.openai.com/v1', apiKey, sampling = {} } = options;
  const sampled = givenOf({ temperature: sampling.temperature, top_p: sampling.topP });
  const quirks = quirksOf(baseUrl);
  const limits = replyLimits(options.replyLimits);
  const client = openAiClient({ apiKey, baseUrl, fetch: vendorFetch(limits) });

  async function* read(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    const body = { ...responsesBody(request, NAME, quirks), ...sampled };
    const events = await client.stream<ResponseEvent>('/responses', body, watch.signal);
    watch.touch();
    yield* readResponseEvents(events, request, NAME, watch);
  }

  return {
    name: NAME,
    capabilities: { ...STATELESS, interleavedSystem: true, images: true, templateMarks: MARKS },
    server: serverOf(baseUrl),
    stream: guardedStream({ limits, secrets: [apiKey], templateMarks: MARKS, read }),
  };
}
