/** What a caller should do about each error. The list of codes is closed; callers decide by code, never by message. */
const POLICY = {
  /** No agent of this id takes messages here. The message lists the nearest names; `to` takes ids and aliases. */
  agent_unknown: 'fix_input',
  /** A setting, option or file is wrong: the message names each with its path. */
  config_invalid: 'fix_input',
  /** There is no such conversation, or the caller may not see it. */
  conversation_unknown: 'fix_input',
  /** The conversation is archived. A message of a trusted person or `reopen` opens it. */
  conversation_archived: 'fix_input',
  /** This id is stored with other content, or contains a `:`, which is reserved for the runtime. Use a new id, or none. */
  event_conflict: 'fix_input',
  /** The input does not fit its schema: `data` has each problem with its path. */
  event_invalid: 'fix_input',
  /** A body, text or attachment is over its limit, which `data.limit` names. */
  event_too_large: 'fix_input',
  /** The file is missing, of an unknown format, or damaged: the message names the line. */
  import_invalid: 'fix_input',
  /** The command is not possible now: the message says who may, or what was decided before. */
  command_refused: 'fix_input',
  /** There is no such turn, or the caller may not see it. */
  turn_unknown: 'fix_input',
  /** A package that only one vendor, mode or import needs is not installed: the message has the command that installs it. */
  package_missing: 'operator',
  /** Another process has the data directory open: end it, or choose another one. */
  data_busy: 'operator',
  /** The data directory cannot be created or written: owner, permissions, a full or read-only disk. */
  data_unwritable: 'operator',
  /** A stored record was damaged or changed by hand: restore it. Others are not affected. */
  store_corrupt: 'operator',
  /** A stored event was changed after it was written: `troupe doctor --verify` checks the conversation. */
  event_altered: 'operator',
  /** The database is of a newer version: upgrade this process. */
  store_newer: 'operator',
  /** The database is of an unreleased version: export with that version and import with this one. */
  store_older: 'operator',
  /** A database or Redis is too old, refuses the login, or evicts keys: the message says which. */
  server_unsuitable: 'operator',
  /** The database does not answer: `troupe doctor`, network, TLS, user. */
  store_unavailable: 'retry',
  /** Redis does not answer: `troupe doctor`, network, TLS, user. */
  queue_unavailable: 'retry',
  /** An address is not on the allow list, or leads to a private network: `data.reason`. */
  address_refused: 'fix_input',
  /** An allowed address does not answer now. */
  address_unreachable: 'retry',
  /** The record of an actor cannot be read: it takes no turns until it is repaired and resumed. */
  actor_corrupt: 'stop',
  /** The record of an actor is of a newer version: finish the deploy. */
  actor_newer: 'operator',
  /** Another process took the actor over. Its work continues there. */
  lease_lost: 'stop',
  /** The turn ended its process again and again, or was unfinished for more than 7 days: look for memory use or a tool that crashes. */
  poison: 'stop',
  /** A turn reached `limits.maxSteps` model calls: retry it, or raise the limit. */
  step_limit: 'stop',
  /** A guard stopped work among agents: the `guard.stopped` event before it says which, and how to go on. */
  guard_stopped: 'stop',
  /** The agent is at work and `whileBusy` is `reject`: send it again later. */
  agent_busy: 'fix_input',
  /** Too many actors of the tenant wait: add workers, or find what sends so many messages. `data.retryAfterMs`. */
  tenant_busy: 'retry',
  /** There is no such task, question or approval, or the caller may not see it. */
  task_unknown: 'fix_input',
  /** A budget is used up: raise the setting that the message names, or wait for the next period. */
  budget_exceeded: 'stop',
  /** A person, a signal or a time limit ended it. */
  aborted: 'stop',
  /** The process is ending: try again. */
  shutting_down: 'stop',
  /** The prompt does not fit the window: the message names the largest layers and messages. */
  context_overflow: 'stop',
  /** Compacting what came since the last compaction is more work than a turn may do: begin another conversation. */
  context_too_costly: 'stop',
  /** The vendor refuses the key: check it in the environment of the workers. */
  provider_auth: 'stop',
  /** The account has no credit left. */
  provider_quota: 'stop',
  /** The vendor does not know the model, or this account may not use it. */
  provider_model_unknown: 'stop',
  /** A filter of the vendor ended the answer, or refused the request. */
  provider_refused: 'stop',
  /** The vendor calls the request invalid: the message has its reason. */
  provider_invalid_request: 'stop',
  /** The server answered with a redirect, which is not followed: give the final `baseUrl`. */
  provider_redirected: 'stop',
  /** The certificate of the server was refused. */
  provider_unverified: 'stop',
  /** The answer reached `maxOutputTokens` or a limit of `replyLimits` before it could be used. */
  provider_reply_too_long: 'stop',
  /** The vendor limits the rate: set `limits.providers.NAME.callsPerMinute`. */
  provider_rate_limited: 'retry',
  /** The vendor is overloaded. */
  provider_overloaded: 'retry',
  /** The server cannot be reached. */
  provider_unreachable: 'retry',
  /** The answer broke off in the middle. */
  provider_truncated: 'retry',
  /** The vendor failed, or its answer could not be read. */
  provider_failed: 'retry',
  /** The reply does not fit the agent's `reply` schema after 3 corrections: simplify it, or use another model. */
  provider_invalid_reply: 'retry',
  /** The session of an agent program is gone: a new one begins at once. */
  provider_session_lost: 'retry',
  /** The program of an agent cannot be used: `troupe doctor` says why. */
  provider_unusable: 'operator',
  /** A defect of Troupe: report it. `TROUPE_DEBUG=1` before a command shows its stack, which may hold your input. */
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
