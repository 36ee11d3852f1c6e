/**
 * What a caller should do about each error. The list of codes is closed; callers decide by code, never by message.
 */
const POLICY = {
  agent_unknown: 'fix_input',
  config_invalid: 'fix_input',
  conversation_unknown: 'fix_input',
  conversation_archived: 'fix_input',
  event_conflict: 'fix_input',
  event_invalid: 'fix_input',
  event_too_large: 'fix_input',
  import_invalid: 'fix_input',
  command_refused: 'fix_input',
  turn_unknown: 'fix_input',
  package_missing: 'operator',
  data_busy: 'operator',
  data_unwritable: 'operator',
  store_corrupt: 'operator',
  event_altered: 'operator',
  store_newer: 'operator',
  store_older: 'operator',
  server_unsuitable: 'operator',
  store_unavailable: 'retry',
  queue_unavailable: 'retry',
  address_refused: 'fix_input',
  address_unreachable: 'retry',
  actor_corrupt: 'stop',
  actor_newer: 'operator',
  lease_lost: 'stop',
  poison: 'stop',
  step_limit: 'stop',
  guard_stopped: 'stop',
  agent_busy: 'fix_input',
  tenant_busy: 'retry',
  task_unknown: 'fix_input',
  budget_exceeded: 'stop',
  aborted: 'stop',
  shutting_down: 'stop',
  context_overflow: 'stop',
  context_too_costly: 'stop',
  provider_auth: 'stop',
  provider_quota: 'stop',
  provider_model_unknown: 'stop',
  provider_refused: 'stop',
  provider_invalid_request: 'stop',
  provider_redirected: 'stop',
  provider_unverified: 'stop',
  provider_reply_too_long: 'stop',
  provider_rate_limited: 'retry',
  provider_overloaded: 'retry',
  provider_unreachable: 'retry',
  provider_truncated: 'retry',
  provider_failed: 'retry',
  provider_invalid_reply: 'retry',
  provider_session_lost: 'retry',
  provider_unusable: 'operator',
  internal: 'stop',
} as const;

/**
 * `retry`: transient, try again later. `stop`: this attempt is over. `fix_input`: the caller must change the input.
 * `operator`: somebody must act on the machine.
 */
export type ErrorPolicy = 'retry' | 'stop' | 'fix_input' | 'operator';
/** What went wrong. The list is closed. */
export type ErrorCode = keyof typeof POLICY;
/** Every code of a `TroupeError`. */
export const ERROR_CODES = Object.keys(POLICY) as ErrorCode[];

/** The only error class. The message says what happened, why, and what to do; `data` has the same facts for programs. */
export class TroupeError extends Error {
  override readonly name = 'TroupeError';
  /** One of a closed list. */
  readonly code: ErrorCode;
  /** Facts for programs. */
  readonly data: Record<string, unknown>;

  constructor(code: ErrorCode, message: string, data: Record<string, unknown> = {}, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.data = data;
  }

  /** Whether trying again can help. */
  get policy(): ErrorPolicy {
    return POLICY[this.code];
  }
}

/** What a caller should do about an error of a code. */
export function policyOf(code: ErrorCode): ErrorPolicy {
  return POLICY[code];
}

/** Converts anything thrown to a TroupeError. Unknown errors become `internal`, with the original as the cause. */
export function toTroupeError(thrown: unknown): TroupeError {
  if (thrown instanceof TroupeError) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new TroupeError('internal', message, {}, { cause: thrown });
}
