import { TroupeError } from '../troupe.ts';

/** The errors of the protocol, by the reason that clients are told. */
const PROBLEMS = {
  TASK_NOT_FOUND: { code: -32001, status: 404, name: 'NOT_FOUND', of: 'task_unknown' },
  TASK_NOT_CANCELABLE: { code: -32002, status: 400, name: 'FAILED_PRECONDITION', of: 'command_refused' },
  UNSUPPORTED_OPERATION: { code: -32004, status: 400, name: 'FAILED_PRECONDITION', of: 'command_refused' },
  CONTENT_TYPE_NOT_SUPPORTED: { code: -32005, status: 415, name: 'INVALID_ARGUMENT', of: 'event_invalid' },
  VERSION_NOT_SUPPORTED: { code: -32009, status: 400, name: 'FAILED_PRECONDITION', of: 'event_invalid' },
  INVALID_PARAMS: { code: -32602, status: 400, name: 'INVALID_ARGUMENT', of: 'event_invalid' },
  INVALID_REQUEST: { code: -32600, status: 400, name: 'INVALID_ARGUMENT', of: 'event_invalid' },
  PARSE_ERROR: { code: -32700, status: 400, name: 'INVALID_ARGUMENT', of: 'event_invalid' },
  METHOD_NOT_FOUND: { code: -32601, status: 404, name: 'NOT_FOUND', of: 'event_invalid' },
} as const;

export type Reason = keyof typeof PROBLEMS;

/** What a client is told of an error, in either binding. */
export interface Problem {
  /** Of JSON-RPC. */
  code: number;
  /** Of HTTP. */
  status: number;
  /** The canonical name of the status. */
  name: string;
  reason: string;
  message: string;
}

const REASON = 'a2aReason';

/** An error of the protocol. */
export function a2aError(reason: Reason, message: string): TroupeError {
  return new TroupeError(PROBLEMS[reason].of, message, { [REASON]: reason });
}

/** The error as the protocol has it. Null: it has none, and the answer is the one of every other route. */
export function problemOf(thrown: unknown): Problem | null {
  if (!(thrown instanceof TroupeError)) return null;
  const { code, message, data } = thrown;
  const reason = (data[REASON] as Reason | undefined) ?? REASONS[code];
  if (!reason) return null;
  const { of: _, ...problem } = PROBLEMS[reason];
  return { ...problem, reason, message };
}

/** Codes that every call may give. */
const REASONS: Partial<Record<TroupeError['code'], Reason>> = {
  task_unknown: 'TASK_NOT_FOUND',
  conversation_unknown: 'TASK_NOT_FOUND',
  command_refused: 'UNSUPPORTED_OPERATION',
  conversation_archived: 'UNSUPPORTED_OPERATION',
  agent_busy: 'UNSUPPORTED_OPERATION',
  event_invalid: 'INVALID_PARAMS',
  event_conflict: 'INVALID_PARAMS',
  agent_unknown: 'INVALID_PARAMS',
  address_refused: 'INVALID_PARAMS',
};

const DOMAIN = 'a2a-protocol.org';

/** `google.rpc.ErrorInfo`, in the list that both bindings give. */
export function errorInfo({ reason }: Pick<Problem, 'reason'>): object[] {
  return [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: DOMAIN }];
}
