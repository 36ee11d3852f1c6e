import { a2aError, errorInfo, type Problem, problemOf } from './problem.ts';
import { RpcRequest } from './requests.ts';
import { checkVersion, readBody } from './read-body.ts';
import { type Call, operate } from './operations.ts';
import { type StreamForm, streamReply } from './stream-reply.ts';

type RpcId = string | number | null;
const INTERNAL = -32_603;

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
    return streamReply(reply, { context, caller, clock: server.clock }, formOf(id));
  } catch (error) {
    const problem = problemOf(error);
    if (!problem) throw error;
    return context.json({ jsonrpc: '2.0', id, error: rpcError(problem) });
  }
}

function readRequest(body: unknown) {
  const request = RpcRequest.safeParse(body);
  if (!request.success) throw a2aError('INVALID_REQUEST', 'the body is no request of JSON-RPC 2.0');
  return request.data;
}

function rpcError(problem: Problem): object {
  const { code, message } = problem;
  return { code, message, ...(code !== INTERNAL && code > -32_100 && { data: errorInfo(problem) }) };
}

function formOf(id: RpcId): StreamForm {
  return {
    result: (result) => frame({ jsonrpc: '2.0', id, result }),
    problem: (problem) => frame({ jsonrpc: '2.0', id, error: rpcError(problem) }),
  };
}

function frame(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}
