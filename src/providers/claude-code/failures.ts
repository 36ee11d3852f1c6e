import { classifyFailure, type VendorError } from '../classify-failure.ts';
import type { ModelFailure } from '../provider.ts';
import type { SdkMessage } from './agent-sdk.ts';

/** Words of Claude Code's own, as the API would have said it. */
const WORDS: Readonly<Record<string, string>> = {
  authentication_failed: 'authentication_error',
  oauth_org_not_allowed: 'authentication_error',
  rate_limit: 'rate_limit_error',
  invalid_request: 'invalid_request_error',
  prompt_too_long: 'request_too_large',
};
const LOST =
  /No conversation found with session ID|--resume requires a valid session|No message found with message\.uuid/;

interface ResultContext {
  /** The synthetic message that told of it. */
  apiError: SdkMessage | undefined;
  /** The model had begun to answer. */
  opened: boolean;
  secrets: readonly string[];
}

/** A turn that ended with an error. The headers of the API's answer are not passed on by Claude Code. */
export function failureOfResult(
  result: SdkMessage,
  { apiError, opened, secrets }: ResultContext,
): ModelFailure {
  const errors = result.errors?.join('; ') ?? '';
  if (LOST.test(errors)) return { code: 'provider_session_lost', message: errors };
  const said = [apiError?.error, result.api_error_type ?? apiError?.api_error_type, result.terminal_reason];
  const error: VendorError = {
    words: said.flatMap((word) => (word === undefined ? [] : [WORDS[word] ?? word.toLowerCase()])),
    message: result.result || errors || 'Claude Code gave no reason',
    connection: (result.api_error ?? apiError?.api_error) === 'connection_failed',
  };
  const status = result.api_error_status ?? apiError?.api_error_status;
  if (typeof status === 'number') error.status = status;
  return classifyFailure(error, { opened, now: Date.now(), secrets });
}

interface EndContext {
  opened: boolean;
  /** Of the package. */
  version: string;
  secrets: readonly string[];
}

const ENDED_BY_SIGNAL = /^it was ended by SIG/;

/** A process that ended within a turn. */
export function failureOfEnd(
  { spoke, words }: { spoke: boolean; words: string },
  { opened, version, secrets }: EndContext,
): ModelFailure {
  let message = `Claude Code (@anthropic-ai/claude-agent-sdk ${version}) ${spoke ? 'ended within a turn' : 'did not start'}: ${words}`;
  for (const secret of secrets) message = message.replaceAll(secret, '[key]');
  // Killed from outside: nothing is wrong with the program, and the next one may start.
  if (!spoke && !ENDED_BY_SIGNAL.test(words)) return { code: 'provider_unusable', message };
  return { code: opened ? 'provider_truncated' : 'provider_failed', message };
}
