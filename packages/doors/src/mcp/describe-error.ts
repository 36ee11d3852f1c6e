import { TroupeError } from '../troupe.ts';
import type { McpHost } from './host.ts';

/** The error in words for a client. What the client cannot have caused is reported to the operator instead. */
export function describeError(error: unknown, { onError }: Pick<McpHost, 'onError'>): string {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown };
  const isKnown = error instanceof TroupeError || (error instanceof Error && error.name === 'Refusal');
  if (isKnown && code !== 'internal') return `${String(code)}: ${String(message)}`;
  onError(error);
  return 'internal: an internal error occurred; the server has reported it to its operator';
}
