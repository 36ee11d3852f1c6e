import { TroupeError } from '../base/errors.ts';

/**
 * A language model of the AI SDK (`LanguageModelV4` of `@ai-sdk/provider`), such as `bedrock('…')`. Described by its shape,
 * so that programs without the AI SDK compile.
 */
export interface AiSdkModel {
  readonly specificationVersion: 'v4';
  /** Name of the vendor. */
  readonly provider: string;
  /** Name of the model. */
  readonly modelId: string;
  /** Answers a prompt. */
  doStream(options: never): PromiseLike<{ stream: ReadableStream<unknown> }>;
}

/** A vendor package of the AI SDK, such as `bedrock`: it makes a model from an id. */
export interface AiSdkVendor {
  readonly specificationVersion: 'v4';
  /** The model with this id. */
  languageModel(modelId: string): AiSdkModel;
}

/** An embedding model of the AI SDK (`EmbeddingModelV4`), such as `bedrock.embeddingModel('…')`. */
export interface AiSdkEmbeddingModel {
  readonly specificationVersion: 'v4';
  /** Name of the vendor. */
  readonly provider: string;
  /** Name of the model. */
  readonly modelId: string;
  /** Turns texts into vectors. */
  doEmbed(options: never): PromiseLike<{ embeddings: number[][] }>;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  (typeof value === 'object' && value !== null) || typeof value === 'function';

/** Whether the value is a language model of the AI SDK, of any version of its specification. */
export function isAiSdkModel(value: unknown): value is AiSdkModel {
  return isObject(value) && 'specificationVersion' in value && typeof value['doStream'] === 'function';
}

export function isAiSdkEmbeddingModel(value: unknown): value is AiSdkEmbeddingModel {
  return isObject(value) && 'specificationVersion' in value && typeof value['doEmbed'] === 'function';
}

export function isAiSdkVendor(value: unknown): value is AiSdkVendor {
  return isObject(value) && 'specificationVersion' in value && typeof value['languageModel'] === 'function';
}

/** Why a model of this version of the specification cannot be used; null if it can. */
export function versionProblem({
  specificationVersion: version,
}: {
  specificationVersion: unknown;
}): string | null {
  if (version === 'v4') return null;
  const given = typeof version === 'string' ? version : typeof version;
  return `is a model of version ${given} of the AI SDK's specification, and v4 is needed: install a version of its package that depends on @ai-sdk/provider 4`;
}

/** The vendor's model that the agent names. */
export function modelOf(vendor: AiSdkVendor, { id, model }: { id: string; model: string }): AiSdkModel {
  try {
    return vendor.languageModel(model);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError(
      'config_invalid',
      `agent "${id}": its model "${model}" cannot be made: ${why}`,
      {},
      { cause },
    );
  }
}
