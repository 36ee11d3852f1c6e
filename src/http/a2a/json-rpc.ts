import type { Context } from 'hono';
import { a2aError, errorInfo, type Problem, problemOf } from '../../doors/a2a/problem.ts';
import { RpcRequest } from '../../doors/a2a/requests.ts';
import { toTroupeError } from '../../errors.ts';
import type { Clock } from '../../clock.ts';
import type { Caller } from '../access/caller.ts';
import { openStream, withHeartbeats } from '../open-stream.ts';
import { readMessages } from '../read-json.ts';
import { checkVersion } from './check-version.ts';
import { type Call, operate, type Reply } from './operations.ts';

type RpcId = string | number | null;
const INTERNAL = -32603;

/** Answers a request of JSON-RPC. What the protocol has no error for is refused as by every other route. */
export async function answerRpc(call: Omit<Call, 'params'>): Promise<Response> {
  const { context, caller, server } = call;
  let id: RpcId = null;
  try {
    const request = readRequest(await readBody(context));
    id = request.id ?? null;
    checkVersion(context);
    const reply = await operate(request.method, { ...call, params: request.params ?? {} });
    if (reply.type === 'value') return context.json({ jsonrpc: '2.0', id, result: reply.value });
    return streamReply(reply, { context, caller, clock: server.clock, id });
  } catch (error) {
    const problem = problemOf(error);
    if (!problem) throw error;
    return context.json({ jsonrpc: '2.0', id, error: rpcError(problem) });
  }
}

async function readBody(context: Context): Promise<unknown> {
  try {
    return await readMessages(context);
  } catch (error) {
    const { code, message } = toTroupeError(error);
    if (code === 'event_invalid') throw a2aError('PARSE_ERROR', message);
    throw error;
  }
}

function readRequest(body: unknown) {
  const request = RpcRequest.safeParse(body);
  if (!request.success) throw a2aError('INVALID_REQUEST', 'the body is no request of JSON-RPC 2.0');
  return request.data;
}

function rpcError(problem: Problem): object {
  const { code, message } = problem;
  return { code, message, ...(code > -32_100 && { data: errorInfo(problem) }) };
}

interface StreamParts {
  context: Context;
  caller: Caller;
  clock: Clock;
  id: RpcId;
}

function streamReply(
  { place, tell }: Extract<Reply, { type: 'stream' }>,
  { context, caller, clock, id }: StreamParts,
): Response {
  async function* frames(ends: AbortSignal): AsyncGenerator<string, void> {
    try {
      for await (const result of tell(ends)) yield frame({ jsonrpc: '2.0', id, result });
    } catch (error) {
      if (ends.aborted) return;
      const problem = problemOf(error);
      const { code, message } = toTroupeError(error);
      const told = problem ? rpcError(problem) : { code: INTERNAL, message: `${code}: ${message}` };
      yield frame({ jsonrpc: '2.0', id, error: told });
    }
  }
  const write = (ends: AbortSignal) => withHeartbeats(frames(ends), { clock, ends });
  return openStream(context, write, { caller, clock, place });
}

function frame(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}
