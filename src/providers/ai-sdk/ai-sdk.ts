import type { LanguageModelV4, LanguageModelV4CallOptions, EmbeddingModelV4 } from '@ai-sdk/provider';
import { guardedStream, type StreamWatch } from '../guard-stream.ts';
import { type ModelEvent, type ModelRequest, type Provider, STATELESS } from '../provider.ts';
import { type ReplyLimitSettings, replyLimits } from '../reply-limits.ts';
import { NO_EXTRAS, type RequestExtras, givenOf, type Sampling } from '../request-settings.ts';
import { toolProblem } from '../fit-tools.ts';
import { vendorFailure, readParts } from './read-parts.ts';
import type { AiSdkModel, AiSdkEmbeddingModel } from '../ai-sdk-model.ts';
import { callOptions, type PartMetadata, traitsOf } from './prompt.ts';
import { type Embedder, guardedEmbedder } from '../embedder.ts';

interface AiSdkOptions {
  replyLimits?: ReplyLimitSettings | undefined;
  sampling?: Sampling | undefined;
  extras?: RequestExtras | undefined;
}

/** A language model of the AI SDK. Its vendor package makes the requests. */
export function createAiSdk(
  given: AiSdkModel,
  { sampling = {}, extras = NO_EXTRAS, ...options }: AiSdkOptions = {},
): Provider {
  const model = given as unknown as LanguageModelV4;
  const name = `ai-sdk.${model.provider.replace(/[^\w.-]/g, '_')}`.slice(0, 64);
  const traits = traitsOf(model);
  const { templateMarks, tools } = traits;
  const limits = replyLimits(options.replyLimits);

  async function* read(request: ModelRequest, watch: StreamWatch): AsyncGenerator<ModelEvent> {
    const asked: LanguageModelV4CallOptions = {
      ...callOptions(request, { provider: name, traits }),
      ...samplingOptions(sampling, request),
      headers: extras.headers,
      providerOptions: withOptions(traits.options, extras.body as PartMetadata),
      ...givenOf({ reasoning: extras.effort }),
      abortSignal: watch.signal,
    };
    try {
      const { stream } = await model.doStream(asked);
      watch.touch();
      yield* readParts(stream, request, name, watch);
    } catch (thrown) {
      throw vendorFailure(thrown);
    }
  }

  return {
    name,
    capabilities: {
      ...STATELESS,
      images: true,
      caching: traits.cacheMark ? 'breakpoints' : 'automatic',
      templateMarks,
    },
    toolProblem: (tool) => toolProblem(tool, tools),
    stream: guardedStream({ name, limits, secrets: extras.secrets, templateMarks, tools, read }),
  };
}

function samplingOptions(
  { stop, ...sampling }: Sampling,
  { trace }: ModelRequest,
): Partial<LanguageModelV4CallOptions> {
  return givenOf({
    ...sampling,
    stopSequences: trace.purpose === 'compaction' || !stop ? undefined : [...stop],
  });
}

function withOptions(known: PartMetadata, own: PartMetadata): PartMetadata {
  const merged = Object.entries(own).map(
    ([vendor, options]) => [vendor, { ...known[vendor], ...options }] as const,
  );
  return { ...known, ...Object.fromEntries(merged) };
}

/** An embedding model of the AI SDK. Its vendor package makes the requests. */
export function createAiSdkEmbedder(given: AiSdkEmbeddingModel): Embedder {
  const model = given as unknown as EmbeddingModelV4;
  return guardedEmbedder({
    name: `ai-sdk.${model.provider}`,
    model: model.modelId,
    maxInputs: async () => model.maxEmbeddingsPerCall,
    async read(values, abortSignal) {
      try {
        return (await model.doEmbed({ values, abortSignal })).embeddings;
      } catch (thrown) {
        throw vendorFailure(thrown);
      }
    },
  });
}
