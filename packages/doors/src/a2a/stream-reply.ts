import type { Context } from 'hono';
import { type Problem, problemOf } from './problem.ts';
import { type Caller, openStream, withHeartbeats } from '../http.ts';
import { type Clock, toTroupeError } from '../troupe.ts';
import type { Reply } from './operations.ts';

/** How a binding writes a stream, as text of server-sent events. */
export interface StreamForm {
  result: (result: object) => string;
  /** An error in the middle of the stream. */
  problem: (problem: Problem) => string;
}

interface StreamParts {
  context: Context;
  caller: Caller;
  clock: Clock;
}

export function streamReply(
  { place, tell }: Extract<Reply, { type: 'stream' }>,
  { context, caller, clock }: StreamParts,
  form: StreamForm,
): Response {
  async function* frames(ends: AbortSignal): AsyncGenerator<string, void> {
    try {
      for await (const result of tell(ends)) yield form.result(result);
    } catch (error) {
      if (!ends.aborted) yield form.problem(problemOf(error) ?? internal(error));
    }
  }
  const write = (ends: AbortSignal) => withHeartbeats(frames(ends), { clock, ends });
  return openStream(context, write, { caller, clock, place });
}

function internal(error: unknown): Problem {
  const { code, message } = toTroupeError(error);
  return {
    code: -32_603,
    status: 500,
    name: 'INTERNAL',
    reason: 'INTERNAL_ERROR',
    message: `${code}: ${message}`,
  };
}
