import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { ErrorCode } from '../base/errors.ts';
import { type Counters, METRICS } from '../events/metrics.ts';
import { toTroupeError } from '../base/errors.ts';

/** Codes of errors that the HTTP layer itself raises, before it calls the troupe. */
type RefusalCode =
  | 'route_unknown'
  | 'method_refused'
  | 'host_refused'
  | 'origin_refused'
  | 'token_required'
  | 'read_only'
  | 'scope_missing'
  | 'author_refused'
  | 'rate_limited'
  | 'key_unknown'
  | 'webhook_unknown'
  | 'content_type_refused';

/** An error answer that refuses a request. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  /** Status of the answer. */
  readonly status: ContentfulStatusCode;
  /** Its code, for programs. */
  readonly code: RefusalCode;
  /** Facts for programs. */
  readonly data: Record<string, unknown>;

  constructor(
    status: ContentfulStatusCode,
    code: RefusalCode,
    message: string,
    data: Record<string, unknown> = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.data = data;
  }
}

type Counted = Counters['requests_refused']['code'];

/** The code, if it is counted in the metrics. */
export function countedRefusal(thrown: unknown): Counted | null {
  const { code } = Object(thrown) as { code?: unknown };
  return METRICS.requests_refused.labels.code.find((each) => each === code) ?? null;
}

/** Also sets the header `allow`. */
export function methodRefused(context: Context, methods: readonly string[]): Refusal {
  const { method, path } = context.req;
  const allow = methods.join(', ');
  context.header('allow', allow);
  const message = `${path} allows ${allow}, not ${method}; see /api/openapi.json`;
  return new Refusal(405, 'method_refused', message, { methods });
}

export function rateLimited(message: string, limit: number, retryAfterMs: number): Refusal {
  return new Refusal(429, 'rate_limited', `${message}: try again later`, { limit, retryAfterMs });
}

/** Other codes are faults of the server: 500. */
const STATUS: Partial<Record<ErrorCode, ContentfulStatusCode>> = {
  address_refused: 400,
  agent_unknown: 400,
  config_invalid: 400,
  event_invalid: 400,
  import_invalid: 400,
  conversation_unknown: 404,
  turn_unknown: 404,
  task_unknown: 404,
  agent_busy: 409,
  command_refused: 409,
  conversation_archived: 409,
  event_conflict: 409,
  event_too_large: 413,
  tenant_busy: 429,
  address_unreachable: 502,
  // The wait was ended: the client left, its key was revoked, or the process is about to end.
  aborted: 503,
  data_busy: 503,
  shutting_down: 503,
  store_unavailable: 503,
  queue_unavailable: 503,
  // Another process may run a newer version, which can read it.
  actor_newer: 503,
};
const RETRY_AFTER_SECONDS = '1';

/** The error as `{error: {code, message, data}}`. Details of unexpected errors go to the operator, not to the client. */
export function errorResponse(
  context: Context,
  thrown: unknown,
  onError: (error: unknown) => void,
): Response {
  if (thrown instanceof Refusal) {
    const { status, code, message, data } = thrown;
    const headers = status === 401 ? challenge(context) : retryAfter(data);
    return context.json({ error: { code, message, data } }, status, headers);
  }
  const error = toTroupeError(thrown);
  const { code } = error;
  const status = statusOf(code, context.req.method);
  if (status === 500) onError(thrown);
  if (code === 'internal') {
    const message = 'an internal error occurred; the server has reported it to its operator';
    return context.json({ error: { code, message, data: {} } }, status);
  }
  const headers = status === 503 ? { 'retry-after': RETRY_AFTER_SECONDS } : retryAfter(error.data);
  return context.json({ error: { code, message: error.message, data: error.data } }, status, headers);
}

/** As RFC 6750 says: tells clients how to send a credential, and with `invalid_token` that theirs is not accepted. */
function challenge({ req }: Context): Record<string, string> {
  const why = req.header('authorization') === undefined ? '' : ', error="invalid_token"';
  return { 'www-authenticate': `Bearer realm="troupe"${why}` };
}

/** The delay in whole seconds, as the header needs it. */
function retryAfter({ retryAfterMs }: Record<string, unknown>): Record<string, string> | undefined {
  if (typeof retryAfterMs !== 'number') return undefined;
  return { 'retry-after': String(Math.max(1, Math.ceil(retryAfterMs / 1_000))) };
}

/** An unknown agent is a missing resource where a path names it, and invalid input where a body does. */
function statusOf(code: ErrorCode, method: string): ContentfulStatusCode {
  if (code === 'agent_unknown' && method === 'GET') return 404;
  return STATUS[code] ?? 500;
}
