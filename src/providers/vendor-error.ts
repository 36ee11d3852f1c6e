import type { VendorError } from './classify-failure.ts';

const NETWORK_CODE =
  /^(E[A-Z]{3,}|UND_ERR_\w+|CERT_\w+|ERR_TLS_\w+|DEPTH_ZERO_\w+|SELF_SIGNED_\w+|UNABLE_TO_\w+)$/;

/** Nobody listens, who listened has hung up, or the machine itself is off the network. */
const AWAY_CODES = [
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ETIMEDOUT',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
];

/** Reads what an SDK threw by its shape, so that no adapter needs the error classes of its SDK. */
export function vendorErrorOf(thrown: unknown): VendorError {
  const error = recordOf(thrown);
  const body = recordOf(error['error']);
  const inner = recordOf(body['error']);
  const status = typeof error['status'] === 'number' ? error['status'] : undefined;
  const words = [error['code'], error['type'], body['code'], body['type'], inner['type'], inner['code']]
    .filter((word) => typeof word === 'string')
    .map((word) => word.toLowerCase());
  const causes = causesOf(thrown);
  const connection = status === undefined && causes.some(isConnectionLoss);
  const said = inner['message'] ?? body['message'];
  const message = typeof said === 'string' && said !== '' ? said : messageOf(causes, thrown);
  const vendor: VendorError = { words, message, connection };
  if (connection && causes.some(isAway)) vendor.away = true;
  if (status !== undefined) vendor.status = status;
  const headers = error['headers'];
  if (headers instanceof Headers) vendor.headers = headers;
  return vendor;
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function causesOf(thrown: unknown): Error[] {
  const causes: Error[] = [];
  for (let at = thrown; at instanceof Error && causes.length < 6; at = at.cause) causes.push(at);
  return causes;
}

function isConnectionLoss(error: Error): boolean {
  const { code } = error as { code?: unknown };
  if (typeof code === 'string' && NETWORK_CODE.test(code)) return true;
  if (error.constructor.name.startsWith('APIConnection')) return true;
  // undici's words for a request that did not start and for a body that was cut.
  return error instanceof TypeError && (error.message === 'fetch failed' || error.message === 'terminated');
}

function isAway(error: Error): boolean {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' && AWAY_CODES.includes(code);
}

function messageOf(causes: readonly Error[], thrown: unknown): string {
  if (causes.length === 0) return String(thrown);
  const parts = causes.map((cause) => {
    const { code } = cause as { code?: unknown };
    return cause.message || (typeof code === 'string' ? code : cause.name);
  });
  return [...new Set(parts)].join(': ');
}
