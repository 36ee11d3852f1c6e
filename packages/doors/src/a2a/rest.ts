import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { errorInfo, type Problem, problemOf } from './problem.ts';
import { camelCase } from './requests.ts';
import { checkVersion, readBody } from './read-body.ts';
import { type Call, operate } from './operations.ts';
import { type StreamForm, streamReply } from './stream-reply.ts';

const FORM: StreamForm = {
  result: (result) => `data: ${JSON.stringify(result)}\n\n`,
  problem: (problem) => `event: error\ndata: ${JSON.stringify({ error: statusOf(problem) })}\n\n`,
};

/** Operations whose parameters are the body. */
const WITH_BODY: ReadonlySet<string> = new Set([
  'SendMessage',
  'SendStreamingMessage',
  'CreateTaskPushNotificationConfig',
]);

/**
 * Answers a request of the HTTP+JSON binding. `path` has the parameters of the path. What the protocol has no error for is refused as by
 * every other route.
 */
export async function answerRest(
  operation: string,
  call: Omit<Call, 'params'>,
  path: RestPath,
): Promise<Response> {
  const { context, caller, server } = call;
  try {
    checkVersion(context);
    const params = WITH_BODY.has(operation) ? await bodyOf(context, path) : paramsOf(context, path);
    const reply = await operate(operation, { ...call, params });
    if (reply.type === 'value') return context.json(reply.value);
    return streamReply(reply, { context, caller, clock: server.clock }, FORM);
  } catch (error) {
    const problem = problemOf(error);
    if (!problem) throw error;
    return context.json({ error: statusOf(problem) }, problem.status as ContentfulStatusCode);
  }
}

/** In what is not about a task as such, but about its notifications, `id` is the id of one of them. */
interface RestPath {
  task?: string | undefined;
  push?: string | undefined;
  isAboutPushes: boolean;
}

async function bodyOf(context: Context, { task }: RestPath): Promise<unknown> {
  const body = await readBody(context);
  return task === undefined ? body : { ...(body as object), taskId: task };
}

const NUMBERS: ReadonlySet<string> = new Set(['historyLength', 'pageSize']);
const FLAGS: Readonly<Record<string, boolean>> = { true: true, false: false };

/** The parameters of the query, with their types. What is no number or flag is refused as text. */
function paramsOf({ req }: Context, { task, push, isAboutPushes }: RestPath): object {
  const given = Object.entries(req.query()).map(([spelling, text]) => {
    const name = camelCase(spelling);
    if (NUMBERS.has(name) && /^\d{1,9}$/.test(text)) return [name, Number(text)];
    if (name === 'includeArtifacts') return [name, FLAGS[text] ?? text];
    return [name, text];
  });
  const query = Object.fromEntries(given) as object;
  if (isAboutPushes) return { ...query, taskId: task, ...(push !== undefined && { id: push }) };
  return { ...query, ...(task !== undefined && { id: task }) };
}

/** `google.rpc.Status` */
function statusOf(problem: Problem): object {
  const { status, name, message } = problem;
  return { code: status, status: name, message, details: errorInfo(problem) };
}
