import type { FakeFailure, FakeReply, VendorFailure } from './fake-reply.ts';

const FAILURES: Record<VendorFailure, [status: number, type: string, code: string | null, message: string]> =
  {
    provider_auth: [401, 'invalid_request_error', 'invalid_api_key', 'Incorrect API key provided.'],
    provider_quota: [429, 'insufficient_quota', 'insufficient_quota', 'You exceeded your current quota.'],
    provider_model_unknown: [
      404,
      'invalid_request_error',
      'model_not_found',
      'The model `m` does not exist.',
    ],
    provider_refused: [
      400,
      'invalid_request_error',
      'content_policy_violation',
      'Rejected by the safety system.',
    ],
    provider_invalid_request: [400, 'invalid_request_error', null, 'Invalid value for messages[0].'],
    provider_rate_limited: [429, 'requests', 'rate_limit_exceeded', 'Rate limit reached.'],
    provider_overloaded: [503, 'server_error', null, 'The engine is currently overloaded.'],
    provider_unreachable: [504, 'server_error', null, 'Gateway timeout.'],
    provider_truncated: [500, 'server_error', null, 'Truncated.'],
    provider_failed: [500, 'server_error', null, 'The server had an error.'],
    context_overflow: [
      400,
      'invalid_request_error',
      'context_length_exceeded',
      "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    ],
  };

/** A failure in OpenAI's words, for all of its APIs. */
export function openAiFailure(error: NonNullable<FakeReply['error']>): FakeFailure {
  const [status, type, code, message] = FAILURES[error.code];
  return { status, body: { error: { message: error.message ?? message, type, param: null, code } } };
}
