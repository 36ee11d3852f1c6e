import type { EmbeddingModelV4 } from '@ai-sdk/provider';
import type { AiSdkEmbeddingModel } from '../ai-sdk-model.ts';
import type { Embedder } from '../embedder.ts';
import { guardedEmbedder } from '../guard-embedder.ts';
import { vendorFailure } from './errors.ts';

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
