import type { CallToolResult, InputRequiredResult, ServerContext } from '@modelcontextprotocol/server';
import { type ExchangeId, parseExchangeId } from './exchange-id.ts';
import { type Outcome, outcomeText } from './outcome.ts';
import { TroupeError } from '../troupe.ts';
import { askPeople, callState, commandsOf } from './ask-people.ts';
import { describeError } from './describe-error.ts';
import { followExchange } from './follow-exchange.ts';
import type { McpHost } from './host.ts';
import { progressOf } from './report-progress.ts';

/** A request of a client to call a tool. */
export interface Call {
  host: McpHost;
  context: ServerContext;
  /** Whether the client can ask its user something. */
  canAsk: boolean;
}

/** Begins something: sends a message, executes a command. `key`: the same for a repeated request; null: unknown. */
type Begin = (key: string | null) => Promise<ExchangeId>;

type Result = CallToolResult | InputRequiredResult;

/**
 * Begins something and waits for what comes of it. A call that comes back with what its user has answered begins
 * nothing: it says that to the agents, and goes on waiting.
 */
export async function callAndWait(
  { host, context, canAsk }: Call,
  begin: Begin,
  seconds: number,
): Promise<Result> {
  const { id: request, inputResponses, requestState, signal } = context.mcpReq;
  async function follow(ends: AbortSignal): Promise<Result> {
    const state = callState(requestState<string>());
    const notes = state ? await say(host, commandsOf(state, inputResponses)) : [];
    const id = state ? parseExchangeId(state.id) : await begin(host.keyOf(request));
    const { report, told } = progressOf(context);
    const outcome = await followExchange(host, id, {
      waitMs: seconds * 1_000,
      signal: AbortSignal.any([signal, ends]),
      report,
    });
    await told();
    const round = (state?.round ?? 0) + 1;
    const isDeclined =
      state !== undefined && Object.keys(inputResponses ?? {}).length > 0 && isSame(state.asked, outcome);
    return (canAsk && !isDeclined ? askPeople(outcome, round) : null) ?? resultOf(outcome, notes);
  }
  return orProblem(host, () => host.call(follow));
}

/** What was asked is still open: it was declined, and asking again would only annoy. */
function isSame(asked: readonly { id: string }[], { waits }: Outcome): boolean {
  return waits.length > 0 && waits.every(({ id }) => asked.some((each) => each.id === id));
}

/** Says what people have answered. Somebody else may have done so meanwhile. */
async function say(host: McpHost, commands: ReturnType<typeof commandsOf>): Promise<string[]> {
  const notes: string[] = [];
  for (const command of commands) {
    try {
      await host.command(command);
    } catch (error) {
      if (!(error instanceof TroupeError)) throw error;
      notes.push(`[Not taken: ${error.message}]`);
    }
  }
  return notes;
}

/** Does something and gives its words, or what is wrong. */
export async function callForText(
  { host }: Pick<Call, 'host'>,
  work: () => Promise<string>,
): Promise<CallToolResult> {
  return orProblem(host, async () => ({ content: [{ type: 'text', text: await work() }] }));
}

async function orProblem<T>(host: McpHost, work: () => Promise<T>): Promise<T | CallToolResult> {
  try {
    return await work();
  } catch (error) {
    return { isError: true, content: [{ type: 'text', text: describeError(error, host) }] };
  }
}

function resultOf(outcome: Outcome, notes: readonly string[]): CallToolResult {
  const texts = [...notes, outcomeText(outcome)].map((text) => ({ type: 'text' as const, text }));
  const hasFailed = outcome.status === 'failed' && outcome.text === '';
  return { content: texts, structuredContent: { ...outcome }, ...(hasFailed && { isError: true }) };
}
