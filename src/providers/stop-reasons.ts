import type { ModelEvent, ModelFailure } from './provider.ts';

type Stop = Extract<ModelEvent, { type: 'done' }>['stop'];
type Kind = Stop | 'malformed' | 'failed' | 'overloaded' | 'broken off';

/**
 * How vendors, gateways and model servers say why an answer ended, as of November 2026. Gateways pass on the words of the vendor
 * behind them, so all of them are known everywhere.
 *  - OpenAI: https://platform.openai.com/docs/api-reference/chat/object
 *  - Anthropic: https://docs.anthropic.com/en/api/handling-stop-reasons
 *  - Gemini, also with a filter in front (`function_call_filter: …`): https://ai.google.dev/api/generate-content#FinishReason
 *  - Vertex AI: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/GenerateContentResponse#FinishReason
 *  - Bedrock: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
 *  - Mistral (`model_length`): https://docs.mistral.ai/api/
 *  - DeepSeek (`insufficient_system_resource`): https://api-docs.deepseek.com/api/create-chat-completion
 *  - Cohere: https://docs.cohere.com/reference/chat-stream
 *  - GLM (`sensitive`, `network_error`): https://docs.z.ai/api-reference/llm/chat-completion
 *  - watsonx (`token_limit`, `time_limit`): https://cloud.ibm.com/apidocs/watsonx-ai
 *  - OpenRouter (`error`): https://openrouter.ai/docs/api-reference/overview
 *  - LM Studio (`maxPredictedTokensReached`): https://lmstudio.ai/docs/typescript/api-reference/llm-prediction-stop-reason
 *  - vLLM and SGLang (`abort`), text-generation-inference (`eos_token`), Together (`eos`)
 */
const WORDS: Readonly<Record<Kind, string>> = {
  end: 'stop end end_turn eos eos_token eos_found stop_sequence stop_string_found complete completed finished normal',
  calls: 'tool_calls tool_call tool_use function_call function_calls',
  length:
    'length max_tokens max_output_tokens max_completion_tokens max_length model_length token_limit time_limit error_limit limit pause_turn context_length model_context_window_exceeded max_predicted_tokens_reached context_length_reached',
  refusal:
    'content_filter content_filtered refusal safety recitation language blocklist prohibited_content spii image_safety image_prohibited_content image_recitation guardrail_intervened guardrails model_armor sensitive error_toxic moderation blocked',
  malformed:
    'malformed_function_call malformed_tool_call malformed_tool_use malformed_model_output malformed_response unexpected_tool_call too_many_tool_calls missing_thought_signature invalid_tool_call invalid_function_call function_call_filter',
  failed: 'error failed internal_error server_error network_error model_unloaded',
  overloaded: 'insufficient_system_resource overloaded',
  'broken off': 'abort aborted cancelled canceled user_cancel user_stopped interrupted timeout not_finished',
};

const KINDS: ReadonlyMap<string, Kind> = new Map(
  Object.entries(WORDS).flatMap(([kind, words]) => words.split(' ').map((word) => [word, kind as Kind])),
);

/**
 * Ignores case and separators: `MAX_TOKENS`, `maxTokens` and `max-tokens` are the same. Of `content_filter: SAFETY` the more
 * specific part counts.
 */
export function kindOfEnd(reason: unknown): Kind | null {
  if (typeof reason !== 'string') return null;
  const parts = reason.slice(0, 200).split(':');
  const words = parts.map((part) =>
    part
      .trim()
      .replace(/([a-z])([A-Z])/g, '$1_$2')
      .replace(/[\s-]+/g, '_')
      .toLowerCase(),
  );
  const known = words.toReversed().find((word) => KINDS.has(word));
  return known === undefined ? null : (KINDS.get(known) ?? null);
}

/** How an answer ended, in the terms of the port. */
export type VendorEnd = { stop: Stop; broken?: ''; ended?: string } | { failed: ModelFailure };

/** `called`: the answer holds calls, which many servers do not report as its end. `why`: the vendor's message about a failure. */
export function vendorEnd(reason: string, called: boolean, why?: unknown): VendorEnd {
  const kind = kindOfEnd(reason);
  const words = typeof why === 'string' && why !== '' ? why : `the server ended the answer with "${reason}"`;
  switch (kind) {
    case 'failed':
      return { failed: { code: 'provider_failed', message: words } };
    case 'overloaded':
      return { failed: { code: 'provider_overloaded', message: words } };
    case 'broken off':
      return { failed: { code: 'provider_truncated', message: words } };
    case 'malformed':
      return { stop: called ? 'calls' : 'end', broken: '' };
    case 'end':
      return { stop: called ? 'calls' : 'end' };
    case 'calls':
    case 'length':
    case 'refusal':
      return { stop: kind };
    case null:
      return { stop: called ? 'calls' : 'end', ended: reason };
  }
}
