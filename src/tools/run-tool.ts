import * as z from 'zod';
import type { Clock } from '../clock.ts';
import type { ToolCall } from '../events/index.ts';
import { firstProblems } from './schema.ts';
import { type Tool, type ToolContext, ToolRequest } from './tool.ts';

interface ToolRun {
  outcome: 'done' | 'failed';
  /** The text shown to the model. */
  text: string;
  request?: ToolRequest;
}

/**
 * Runs one call. Never throws: every failure becomes a text that the model can act on. Settles at the timeout or the
 * abort even if the tool ignores its signal; later effects of such a tool are not observed.
 */
export async function runTool(
  tool: Tool,
  call: ToolCall,
  context: ToolContext,
  { clock }: { clock: Clock },
): Promise<ToolRun> {
  const ending = new AbortController();
  const over = new AbortController();
  try {
    const signal = AbortSignal.any([context.signal, ending.signal]);
    if (signal.aborted) return failed(`${tool.name} was aborted before it started`);
    const timeout = clock.sleep(tool.timeoutMs, AbortSignal.any([over.signal, context.signal]));
    // A check may be asynchronous, so it is under the timeout too.
    const finished = parseAndRun(tool, call, { ...context, signal });
    const result = await Promise.race([finished, timeout]);
    if (result) return result;
    const reason = context.signal.aborted ? 'was aborted' : `took longer than ${tool.timeoutMs} ms`;
    ending.abort(new Error(`${tool.name} ${reason}`));
    return failed(`${tool.name} ${reason} and was stopped; whether it had an effect is not known`);
  } catch (thrown) {
    return failed(`${tool.name} failed: ${messageOf(thrown)}`);
  } finally {
    over.abort();
  }
}

async function parseAndRun(tool: Tool, call: ToolCall, context: ToolContext): Promise<ToolRun> {
  try {
    const args = await parseCall(tool, call);
    if ('failed' in args) return failed(args.failed);
    context.signal.throwIfAborted();
    const returned: unknown = await tool.run(args.value as never, context);
    const { text, request } = normalise(returned);
    return request ? { outcome: 'done', text, request } : { outcome: 'done', text };
  } catch (thrown) {
    return failed(`${tool.name} failed: ${messageOf(thrown)}`);
  }
}

async function parseCall(tool: Tool, call: ToolCall): Promise<{ value: unknown } | { failed: string }> {
  let args: unknown;
  try {
    args = JSON.parse(call.args.trim() || '{}');
  } catch (thrown) {
    return { failed: `the arguments of ${tool.name} are not valid JSON: ${messageOf(thrown)}` };
  }
  if (typeof args !== 'object' || args === null || Array.isArray(args)) {
    return { failed: `the arguments of ${tool.name} must be a JSON object, not ${call.args.slice(0, 100)}` };
  }
  const checked = await tool.check(args);
  if ('value' in checked) return checked;
  const problems = firstProblems(checked.problems).join('\n');
  return { failed: `the arguments of ${tool.name} do not fit its schema:\n${problems}` };
}

/** Tools may be plain JavaScript, so their return values are not trusted. */
function normalise(returned: unknown): { text: string; request?: ToolRequest } {
  if (returned === undefined || returned === null) return { text: '' };
  if (typeof returned === 'string') return { text: returned.toWellFormed() };
  if (typeof returned === 'object' && 'text' in returned && typeof returned.text === 'string') {
    const text = returned.text.toWellFormed();
    if (!('request' in returned) || returned.request === undefined) return { text };
    const request = ToolRequest.safeParse(returned.request);
    if (request.success) return { text, request: request.data };
    throw new Error(`what it asks of the turn is not valid: ${z.prettifyError(request.error)}`);
  }
  const json: unknown = JSON.stringify(returned);
  return { text: typeof json === 'string' ? json.toWellFormed() : '' };
}

function failed(text: string): ToolRun {
  return { outcome: 'failed', text: text.toWellFormed() };
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message || thrown.name : String(thrown);
}
