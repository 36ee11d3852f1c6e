import {
  type CallToolResult,
  type InputRequiredResult,
  type ServerContext,
  acceptedContent,
  inputRequired,
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  type McpServer,
} from '@modelcontextprotocol/server';
import * as z from 'zod';
import {
  TroupeError,
  wholeExchange,
  type ChatChange,
  type Answer,
  type Concluded,
  type CommandInput,
  ConversationId,
  type Clock,
  type Event,
  type Scope,
  type Troupe,
  tryParse,
} from '../troupe.ts';
import { createSpeech, namesIn } from '../speech.ts';

interface Said {
  conversation: string;
  content: string;
  /** Id of the agent. Default: the conversation's routing decides. */
  agent?: string | undefined;
  /** A message with the same id is stored once. */
  id?: string | undefined;
}

/** One caller at a troupe, as the MCP server needs it. Methods throw as those of `Troupe` do. */
export interface McpHost {
  /** The troupe, limited to what the caller may see and do. */
  troupe: Pick<Troupe, 'agents' | 'workflows' | 'events' | 'listConversations' | 'promptOf' | 'tasks'>;
  scopes: readonly Scope[];
  clock: Clock;
  version: string;
  /** Aborted when the caller loses its rights, or the process is about to end. */
  ends?: AbortSignal | undefined;
  /** Id of a new conversation that the caller may write to. The same `key` gives the same id. */
  newConversation(key: string | null): string;
  /**
   * An id of the request that is unique among all of the caller's, and the same when the request is repeated. Null if there is
   * none.
   */
  keyOf(request: string | number): string | null;
  send(said: Said): Promise<ExchangeId>;
  command(command: CommandInput): Promise<Event>;
  /** Executes a call that waits for results, as one of the caller's streams. `ends` aborts when the caller loses its rights. */
  call<T>(work: (ends: AbortSignal) => Promise<T>): Promise<T>;
  /** What followed and still follows from a message or a command. */
  changes(id: ExchangeId, signal: AbortSignal): AsyncGenerator<ChatChange, Answer>;
  /** Executes work that only reads, and charges the reads to the caller. */
  read<T>(work: () => Promise<T>): Promise<T>;
  /** Receives errors whose details the client is not told. */
  onError(error: unknown): void;
}

/** Clients are not notified of changes of these lists. */
export const CAPABILITIES = { tools: { listChanged: false }, resources: { listChanged: false } };

/** A message or a command in the log, and what follows from it. Its id for clients is `CONVERSATION:SEQ`. */
interface ExchangeId {
  conversation: ConversationId;
  seq: number;
}

/** Conversation ids may themselves contain colons. */
const FORM = /^(.{1,128}):(\d{1,15})$/;

function exchangeId({ conversation, seq }: ExchangeId): string {
  return `${conversation}:${seq}`;
}

/** Throws `event_invalid`. */
export function parseExchangeId(text: string): ExchangeId {
  const [, name, digits] = FORM.exec(text) ?? [];
  const conversation = ConversationId.safeParse(name);
  const seq = Number(digits);
  if (conversation.success && seq > 0) return { conversation: conversation.data, seq };
  const message = `"${text.slice(0, 200)}" is no id of an answer: it looks like CONVERSATION:NUMBER, as "ask" gives it`;
  throw new TroupeError('event_invalid', message, { path: 'id' });
}

/** A request of a client to call a tool. */
export interface Call {
  host: McpHost;
  context: ServerContext;
  /** Whether the client can ask its user questions. */
  canAsk: boolean;
}

/** Sends a message or executes a command. `key`: the same for a repeated request; null if unknown. */
type Begin = (key: string | null) => Promise<ExchangeId>;

type Result = CallToolResult | InputRequiredResult;

/**
 * Begins something and waits for the result. A call that returns with its user's answers begins nothing: it passes the answers
 * to the agents, and continues to wait.
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

/** Whether the same questions are still open: the user declined them, and should not be asked again. */
function isSame(asked: readonly { id: string }[], { waits }: Outcome): boolean {
  return waits.length > 0 && waits.every(({ id }) => asked.some((each) => each.id === id));
}

/** Executes the user's answers as commands. Somebody else may have answered meanwhile. */
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

/** Runs `work` and returns its text, or a description of the problem. */
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

interface Follow {
  waitMs: number;
  /** Ends when the client has cancelled its request. */
  signal: AbortSignal;
  /** Receives short lines about the progress. */
  report: (line: string) => void;
}

/** Least wait, ms: even a client that does not want to wait gets what is already there. */
const LEAST_WAIT_MS = 500;

/** The result of a message or a command; `working` if it takes longer than `waitMs`. */
async function followExchange(
  host: Pick<McpHost, 'troupe' | 'clock' | 'ends' | 'changes'>,
  id: ExchangeId,
  { waitMs, signal, report }: Follow,
): Promise<Outcome> {
  const nameOf = namesIn(host.troupe);
  const textOf = createSpeech(id.conversation, nameOf);
  const linesOf = createProgress(nameOf);
  let said = '';
  const late = new AbortController();
  const done = new AbortController();
  const gone = host.ends ? AbortSignal.any([signal, host.ends]) : signal;
  void host.clock.sleep(Math.max(waitMs, LEAST_WAIT_MS), done.signal).then(() => late.abort());
  try {
    const going = wholeExchange(host, id, AbortSignal.any([gone, late.signal]));
    for (;;) {
      const next = await going.next();
      if (next.done) return outcomeOf(id, next.value, nameOf);
      said += textOf(next.value);
      for (const line of linesOf(next.value)) report(line);
    }
  } catch (error) {
    if (late.signal.aborted && !gone.aborted) return workingOn(id, said);
    throw error;
  } finally {
    done.abort();
  }
}

/** Most characters of a line. A line is reported when it is this long, or when the text ends or breaks. */
const LINE_CHARS = 160;

/**
 * Progress as short lines for somebody who waits: text as it comes, and calls. Owns the text that was not reported yet.
 * `nameOf` returns the name of an agent.
 */
function createProgress(nameOf: (agent: string) => string) {
  /** Open text blocks: the speaker, and the text that was not reported yet. */
  const open = new Map<string, { agent: string; rest: string }>();
  const calls = new Map<string, string>();

  function cut(id: string, isEnd: boolean): string[] {
    const block = open.get(id);
    if (!block) return [];
    const lines: string[] = [];
    const take = (length: number) => {
      const line = block.rest.slice(0, length).trim();
      block.rest = block.rest.slice(length);
      if (line !== '') lines.push(`${nameOf(block.agent)}: ${line}`);
    };
    for (;;) {
      const end = block.rest.indexOf('\n');
      if (end >= 0 && end < LINE_CHARS) take(end + 1);
      else if (block.rest.length >= LINE_CHARS) take(LINE_CHARS);
      else break;
    }
    if (isEnd) {
      take(block.rest.length);
      open.delete(id);
    }
    return lines;
  }

  function wordsIn(change: ChatChange): string[] {
    if (change.type === 'block.start' && change.block.kind === 'text')
      open.set(change.block.id, { agent: change.block.agent, rest: '' });
    if (change.type === 'void') for (const id of change.ids) open.delete(id);
    if (change.type === 'block.end') return cut(change.id, true);
    const block = change.type === 'block.delta' ? open.get(change.id) : undefined;
    if (change.type !== 'block.delta' || !block) return [];
    block.rest += change.text;
    return cut(change.id, false);
  }

  function callsIn(change: ChatChange): string[] {
    if (change.type === 'call.start')
      calls.set(change.call.id, `${nameOf(change.call.agent)} calls ${change.call.name}`);
    if (change.type === 'call.ready') return lineOf(calls.get(change.id));
    const text = change.type === 'call.progress' ? change.text : undefined;
    if (change.type !== 'call.progress' || !text) return [];
    return lineOf(`${calls.get(change.id) ?? ''}: ${text}`);
  }

  return (change: ChatChange): string[] => [...wordsIn(change), ...callsIn(change)];
}

function lineOf(line: string | undefined): string[] {
  return line ? [line.slice(0, LINE_CHARS).toWellFormed()] : [];
}

/** Something that people must do first. */
const Waiting = z.object({
  kind: z.enum(['question', 'approval', 'delegation']),
  /** Id for the tools `answer`, `decide` and `cancel`. */
  id: z.string(),
  conversation: z.string(),
  /** Id of the agent that waits. */
  agent: z.string(),
  text: z.string().optional(),
  choices: z.array(z.string()).optional(),
  tool: z.string().optional(),
  args: z.string().optional(),
});
type Waiting = z.infer<typeof Waiting>;

/** The result of a tool that waits for an answer. */
export const Outcome = z.object({
  status: z
    .enum(['answered', 'waiting', 'failed', 'working'])
    .describe('waiting: for people, as "waits" says. working: call "status" with the id'),
  id: z.string().describe('Id of this answer, for "status"'),
  conversation: z.string().describe('Id of the conversation, to go on with it'),
  text: z.string().describe('What the agents have said'),
  waits: z.array(Waiting),
  failures: z.array(z.object({ agent: z.string(), code: z.string(), message: z.string() })),
});
export type Outcome = z.infer<typeof Outcome>;

/** Most characters of an outcome's text, and of the arguments of a call in it. */
const MOST_CHARS = 100_000;
const MOST_ARGS = 10_000;

function outcomeOf(id: ExchangeId, answer: Concluded, nameOf: (agent: string) => string): Outcome {
  const replies = answer.replies.filter(({ conversation }) => conversation === id.conversation);
  const isOne = new Set(replies.map(({ author }) => author.id)).size <= 1;
  const texts = replies.map(({ author, body }) =>
    isOne ? body.content : `**${nameOf(author.id)}:** ${body.content}`,
  );
  return {
    status: answer.outcome,
    ...head(id),
    text: within(texts.filter((text) => text !== '').join('\n\n'), id),
    waits: answer.waits.map(waitingOf),
    failures: answer.failures.map(({ agent, code, message }) => ({ agent, code, message })),
  };
}

/** The result if the work is not done within the time that the client waits. `said`: the text so far. */
function workingOn(id: ExchangeId, said: string): Outcome {
  return { status: 'working', ...head(id), text: within(said, id), waits: [], failures: [] };
}

function head(id: ExchangeId): Pick<Outcome, 'id' | 'conversation'> {
  return { id: exchangeId(id), conversation: id.conversation };
}

/** Keeps the newest text. */
function within(text: string, { conversation }: ExchangeId): string {
  if (text.length <= MOST_CHARS) return text;
  return `[shortened; read troupe://conversations/${conversation} for all]\n…${text.slice(-MOST_CHARS).toWellFormed()}`;
}

function waitingOf({ conversation, task }: Answer['waits'][number]): Waiting {
  const { kind, id, owner, text, choices, tool, args } = task;
  return {
    kind,
    id,
    conversation,
    agent: owner,
    ...(text !== undefined && { text: text.slice(0, MOST_ARGS).toWellFormed() }),
    ...(choices && { choices }),
    ...(tool !== undefined && { tool }),
    ...(args !== undefined && { args: args.slice(0, MOST_ARGS).toWellFormed() }),
  };
}

/** The outcome as text, with what the client can do next. */
function outcomeText(outcome: Outcome): string {
  const { status, id, conversation, text, waits, failures } = outcome;
  const lines = [
    ...(text === '' ? [] : [text]),
    ...waits.map(waitingText),
    ...failures.map(({ agent, code, message }) => `[@${agent} gave no answer (${code}): ${message}]`),
    ...(status === 'working'
      ? [
          `[The agents are still at work. Call the tool "status" with {"id":"${id}","wait":45} for the answer.]`,
        ]
      : []),
    `[conversation: ${conversation}]`,
  ];
  return lines.join('\n\n');
}

function waitingText(waiting: Waiting): string {
  const { kind, id, conversation, agent } = waiting;
  const at = `"conversation":"${conversation}"`;
  if (kind === 'question') {
    const offered = waiting.choices ? ` Choices: ${waiting.choices.join(' | ')}.` : '';
    return `[@${agent} asks: ${waiting.text ?? ''}${offered} Answer with the tool "answer": {${at},"question":"${id}","text":"…"}]`;
  }
  if (kind === 'approval') {
    return `[@${agent} waits for approval to call ${waiting.tool ?? ''} ${waiting.args ?? ''} Ask your user, then decide with the tool "decide": {${at},"request":"${id}","approved":true or false}]`;
  }
  return `[@${agent} waits for a task that nobody works on: ${waiting.text ?? ''} (${id})]`;
}

/** Most questions to a client within one call. The protocol's library ends the call after eight rounds. */
const MOST_ROUNDS = 6;

const Asked = z.object({
  kind: z.enum(['question', 'approval']),
  conversation: z.string(),
  id: z.string(),
});

/**
 * The state with which a call continues after its client's user was asked. It comes back from the client, which may have
 * changed it. Everything in it is looked up and decided with the caller's rights, so it grants nothing.
 */
const CallState = z.object({
  id: z.string(),
  round: z.int().positive(),
  asked: z.array(Asked).max(100),
});
type CallState = z.infer<typeof CallState>;

const Decision = z.object({
  approved: z.boolean().meta({ title: 'Approve the call' }),
  note: z.string().optional().meta({ title: 'A note for the agent' }),
});

/** Undefined for a new call. Throws `event_invalid`. */
function callState(text: string | undefined): CallState | undefined {
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  const state = tryParse(CallState, value);
  if (state.success) return state.data;
  throw new TroupeError('event_invalid', 'requestState is not one that this server has given', {
    path: 'requestState',
  });
}

/** Asks the client's user for what the outcome waits for. Null if there is nothing to ask, or it was asked too often. */
function askPeople(outcome: Outcome, round: number): InputRequiredResult | null {
  const asked = outcome.waits.flatMap((wait) => (wait.kind === 'delegation' ? [] : [wait]));
  if (asked.length === 0 || round > MOST_ROUNDS) return null;
  const state: CallState = {
    id: outcome.id,
    round,
    asked: asked.map(({ kind, conversation, id }) => ({ kind: kind as 'question', conversation, id })),
  };
  return inputRequired({
    inputRequests: Object.fromEntries(asked.map((wait) => [wait.id, formFor(wait)])),
    requestState: JSON.stringify(state),
  });
}

function formFor({ kind, agent, text = '', choices, tool = '', args = '' }: Waiting) {
  if (kind === 'approval') {
    const message = `@${agent} wants to call ${tool} ${args}`;
    return inputRequired.elicit({ message, requestedSchema: Decision });
  }
  const answer = choices?.length ? z.enum(choices) : z.string();
  return inputRequired.elicit({
    message: `@${agent} asks: ${text}`,
    requestedSchema: z.object({ answer: answer.meta({ title: 'Answer' }) }),
  });
}

/** The commands for the answers of the client's user. What the user declined stays open. */
function commandsOf({ asked }: CallState, responses: Record<string, unknown> | undefined): CommandInput[] {
  return asked.flatMap(({ kind, conversation, id }): CommandInput[] => {
    if (kind === 'question') {
      const said = acceptedContent(responses, id, z.object({ answer: z.string() }));
      return said ? [{ command: 'answer', conversation, question: id, content: said.answer }] : [];
    }
    const decision = acceptedContent(responses, id, Decision);
    return decision ? [{ command: 'decide', conversation, request: id, ...decision }] : [];
  });
}

/**
 * Whether a client can ask its user questions. In the newer protocol each request tells what the client can do, in the older
 * one the beginning of the session.
 */
export function canAsk({ server }: McpServer, { mcpReq }: ServerContext): boolean {
  const envelope = mcpReq.envelope as Record<string, unknown> | undefined;
  const told = envelope?.[CLIENT_CAPABILITIES_META_KEY] as ClientCapabilities | undefined;
  return (told ?? server.getClientCapabilities())?.elicitation !== undefined;
}

/** Reports progress to a client that has asked for it. */
interface ProgressReport {
  report: (line: string) => void;
  /** Resolves when everything was sent: a client accepts nothing about a call after its result. */
  told: () => Promise<unknown>;
}

export function progressOf({ mcpReq }: ServerContext): ProgressReport {
  const progressToken = mcpReq._meta?.progressToken;
  let progress = 0;
  let last: Promise<unknown> = Promise.resolve();
  return {
    report(message) {
      if (progressToken === undefined) return;
      progress += 1;
      const sent = mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress, message },
      });
      // The signal of the request aborts when the client has left.
      last = Promise.all([last, sent.catch(() => undefined)]);
    },
    told: () => last,
  };
}

/** The error as text for a client. If the client cannot have caused it, the operator gets the details instead. */
export function describeError(error: unknown, { onError }: Pick<McpHost, 'onError'>): string {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown };
  const isKnown = error instanceof TroupeError || (error instanceof Error && error.name === 'Refusal');
  if (isKnown && code !== 'internal') return `${String(code)}: ${String(message)}`;
  onError(error);
  return 'internal: an internal error occurred; the server has reported it to its operator';
}
