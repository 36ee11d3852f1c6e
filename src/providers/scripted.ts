import type { Clock } from '../base/clock.ts';
import {
  problemText,
  problemsIn,
  type PromptMessage,
  type ToolCall,
  tryParse,
  type Usage,
} from '../events/index.ts';
import { mintCallId } from './call-text.ts';
import {
  type ModelEvent,
  type ModelFailure,
  type ModelRequest,
  type Provider,
  STATELESS,
} from './provider.ts';
import {
  Script,
  type ScriptAnswer,
  type ScriptAsked,
  type ScriptFunction,
  type ScriptInput,
  ScriptReply,
  type ScriptRule,
} from './script.ts';
import * as z from 'zod';
import { ERROR_CODES, toTroupeError, TroupeError } from '../base/errors.ts';

/**
 * A model that follows a script: the first matching rule answers. The answer depends on the request alone, so that a
 * retry after a crash gets the same answer from any process.
 */
export function createScripted({ script, clock }: { script: ScriptInput; clock: Clock }): Provider {
  const rules = compileScript(script);
  return {
    name: 'scripted',
    capabilities: { ...STATELESS, interleavedSystem: true, reportsUsage: false },
    stream: (request, { signal }) => answer(rules, request, clock, signal),
  };
}

async function* answer(
  rules: readonly Rule[],
  request: ModelRequest,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent> {
  yield { type: 'start' };
  const asked = new AskedRequest(request);
  let rule: CompiledRule;
  try {
    rule = ruleFor(rules, asked);
  } catch (thrown) {
    const { message } = toTroupeError(thrown);
    yield { type: 'failed', error: { code: 'provider_invalid_request', message } };
    return;
  }
  const reply = rule.reply(asked);
  const { fail } = rule;
  if (rule.delayMs > 0) await clock.sleep(rule.delayMs, signal, 'pause');
  const said = fail ? reply.slice(0, boundary(reply, fail.after)) : reply;
  const calls = rule.calls.map(({ name, args }, i) => ({
    id: mintCallId(request.trace, i),
    name,
    args: args(asked),
  }));
  yield* written(rule, said, fail ? [] : calls, { clock, signal });
  if (signal.aborted) {
    yield { type: 'aborted' };
    return;
  }
  if (fail) {
    yield { type: 'failed', error: { ...fail.error } };
    return;
  }
  for (const call of calls) yield { type: 'call', call };
  const length = calls.reduce((sum, { args }) => sum + args.length, reply.length);
  yield { type: 'done', stop: calls.length > 0 ? 'calls' : 'end', usage: usageOf(request, length) };
}

/** What the model writes, piece by piece. Without `chunk`, calls are only given whole. */
async function* written(
  { chunk, chunkDelayMs, fail }: CompiledRule,
  said: string,
  calls: readonly ToolCall[],
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): AsyncGenerator<ModelEvent> {
  const texts: ModelEvent[] = [];
  if (chunk === 0 && said !== '') texts.push({ type: 'text', delta: said });
  if (chunk > 0) for (const delta of chunksOf(said, chunk)) texts.push({ type: 'text', delta });
  const pieces =
    chunk > 0 ? calls.flatMap(({ id, name, args }) => piecesOf(id, name, [...chunksOf(args, chunk)])) : [];
  const all = [...texts, ...pieces];
  for (const [at, event] of all.entries()) {
    if (signal.aborted) return;
    yield event;
    if (chunkDelayMs > 0 && (at < all.length - 1 || fail)) await clock.sleep(chunkDelayMs, signal, 'pause');
  }
}

function piecesOf(id: string, name: string, deltas: readonly string[]): ModelEvent[] {
  return ['', ...deltas].map((delta) => ({ type: 'calling', id, name, delta }));
}

function* chunksOf(text: string, size: number): Generator<string> {
  for (let at = 0; at < text.length;) {
    const end = boundary(text, at + size);
    yield text.slice(at, end);
    at = end;
  }
}

/** The index, or the next one if this would split a surrogate pair. */
function boundary(text: string, index: number): number {
  const code = text.charCodeAt(index - 1);
  return index < text.length && code >= 0xd800 && code <= 0xdbff ? index + 1 : index;
}

const SAMPLES = 32;

/** Estimates four characters per token. A long prompt is only sampled, because this runs in benchmarks. */
function usageOf({ messages }: ModelRequest, written: number): Usage {
  const stride = Math.max(1, messages.length / SAMPLES);
  let characters = 0;
  for (let at = 0; at < messages.length; at += stride)
    characters += messages[Math.floor(at)]?.content.length ?? 0;
  const input = Math.ceil((characters * stride) / 4);
  return { input, output: Math.ceil(written / 4), cacheRead: 0, cacheWrite: 0, reasoning: 0 };
}

function noRule(asked: AskedRequest): string {
  const { agent, step, call } = asked;
  const last = JSON.stringify(asked.last.slice(0, 200));
  return `no rule of the script matches: agent ${agent}, step ${step}, call ${call}, answer ${asked.answer}, last message ${last}`;
}

/** Ids of tasks, questions and approvals, as prompts name them. */
const TASK_ID = /\b[adq]-[0-9a-f]{12}\b/g;

/** What rules test, computed on demand: a prompt may hold thousands of messages. */
class AskedRequest implements ScriptAsked {
  readonly request: ModelRequest;
  #texts: readonly string[] | undefined;
  #answer: number | undefined;

  constructor(request: ModelRequest) {
    this.request = request;
  }

  get agent(): string {
    return this.request.trace.agent;
  }

  get conversation(): string {
    return this.request.trace.conversation;
  }

  get step(): number {
    return this.request.trace.step;
  }

  get call(): number {
    return this.request.trace.call;
  }

  get purpose(): 'turn' | 'compaction' {
    return this.request.trace.purpose ?? 'turn';
  }

  get messages(): ModelRequest['messages'] {
    return this.request.messages;
  }

  get tools(): ModelRequest['tools'] {
    return this.request.tools;
  }

  get last(): string {
    return this.texts.at(-1) ?? '';
  }

  get trigger(): string {
    return this.texts.join('\n\n');
  }

  /**
   * The texts of users and tools since the turn began, or since its last step. If the request does not say where the turn
   * began, the last text.
   */
  get texts(): readonly string[] {
    if (this.#texts) return this.#texts;
    const { messages, trace } = this.request;
    const texts: string[] = [];
    for (let at = messages.length - 1; at >= (trace.begins ?? 0); at--) {
      const { role, content } = messages[at] as PromptMessage;
      if (role === 'assistant' && texts.length > 0) break;
      if (role !== 'user' && role !== 'tool') continue;
      texts.unshift(content);
      if (trace.begins === undefined) break;
    }
    return (this.#texts = texts);
  }

  get tasks(): readonly string[] {
    return [...new Set(this.trigger.match(TASK_ID))];
  }

  get task(): string {
    const named = this.tasks.at(-1);
    if (named !== undefined) return named;
    const { messages, conversation } = this;
    const before = messages.findLast((message) => textIn(message).some((text) => text.search(TASK_ID) >= 0));
    return (before?.content.match(TASK_ID) ?? conversation.match(TASK_ID))?.at(-1) ?? '';
  }

  /** A step with calls does not count as an answer. */
  get answer(): number {
    if (this.#answer !== undefined) return this.#answer;
    let answers = 0;
    for (const message of this.request.messages) {
      if (message.role === 'assistant' && !message.calls?.length) answers += 1;
    }
    return (this.#answer = answers + 1);
  }
}

function textIn({ role, content }: PromptMessage): string[] {
  return role === 'user' || role === 'tool' ? [content] : [];
}

interface CompiledRule {
  matches: (asked: AskedRequest) => boolean;
  reply: (asked: AskedRequest) => string;
  calls: readonly { name: string; args: (asked: AskedRequest) => string }[];
  delayMs: number;
  chunkDelayMs: number;
  chunk: number;
  fail: { after: number; error: ModelFailure } | undefined;
}

/** A function returns null if it does not answer. */
type Rule = CompiledRule | ((asked: AskedRequest) => CompiledRule | null);

/** Throws if no rule answers, or if a rule in code fails. */
function ruleFor(rules: readonly Rule[], asked: AskedRequest): CompiledRule {
  for (const rule of rules) {
    if (typeof rule !== 'function') {
      if (rule.matches(asked)) return rule;
      continue;
    }
    const answer = rule(asked);
    if (answer) return answer;
  }
  throw new TroupeError('provider_invalid_request', noRule(asked));
}

/** Validates a script and compiles it, so that a rule takes microseconds. Throws `config_invalid`. */
function compileScript(script: unknown): Rule[] {
  const parsed = Script.safeParse(script);
  if (!parsed.success) {
    throw new TroupeError('config_invalid', `the script is not valid:\n${z.prettifyError(parsed.error)}`);
  }
  return parsed.data.rules.map((rule, index) =>
    typeof rule === 'function' ? compileCode(rule, index) : compileRule(rule, index),
  );
}

function compileRule({ when, ...rule }: z.infer<typeof ScriptRule>, index: number): CompiledRule {
  const pattern = compilePattern(when.matches, index);
  return {
    ...compileReply(rule, compileTemplate, index),
    matches(asked) {
      const { trace } = asked.request;
      if ((when.purpose ?? 'turn') !== (trace.purpose ?? 'turn')) return false;
      if (when.agent !== undefined && when.agent !== trace.agent) return false;
      if (when.step !== undefined && when.step !== trace.step) return false;
      if (when.call !== undefined && when.call !== trace.call) return false;
      if (when.contains !== undefined && !asked.trigger.includes(when.contains)) return false;
      if (pattern && !pattern.test(asked.trigger)) return false;
      return when.answer === undefined || when.answer === asked.answer;
    },
  };
}

/** Asks a rule in code at each call, and checks its result then. The function must be pure, so that a retry gets the same answer. */
function compileCode(code: ScriptFunction, index: number): Rule {
  return function answerOf(asked) {
    const answer = valueOf(code, asked, index);
    if (answer === null || answer === undefined) return null;
    const parsed = tryParse(ScriptReply, typeof answer === 'string' ? { reply: answer } : answer);
    if (parsed.success)
      return { ...compileReply(parsed.data, (text) => () => text, index), matches: () => true };
    const what = problemText(problemsIn(parsed.error), 'it');
    throw new TroupeError(
      'provider_invalid_request',
      `rules[${index}] of the script returned no answer: ${what}`,
    );
  };
}

function valueOf(code: ScriptFunction, asked: ScriptAsked, index: number): ScriptAnswer {
  try {
    return code(asked);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError(
      'provider_invalid_request',
      `rules[${index}] of the script threw: ${reason}`,
      {},
      { cause },
    );
  }
}

type Compile = typeof compileTemplate;

function compileReply(
  { reply, calls, fail, ...times }: z.infer<typeof ScriptReply>,
  compile: Compile,
  index: number,
): Omit<CompiledRule, 'matches'> {
  return {
    ...times,
    reply: compile(reply, (text) => text),
    calls: calls.map(({ name, args }) => ({
      name,
      // A string is used verbatim, so that a script can send arguments that are not JSON.
      args: compile(typeof args === 'string' ? args : (JSON.stringify(args) ?? '{}'), jsonText),
    })),
    fail: fail && {
      after: fail.after,
      error: { code: failureCode(fail.code, index), message: fail.message },
    },
  };
}

function compilePattern(source: string | undefined, index: number): RegExp | undefined {
  if (source === undefined) return undefined;
  try {
    return new RegExp(source, 'su');
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError(
      'config_invalid',
      `rules[${index}].when.matches: ${reason}`,
      { rule: index },
      { cause },
    );
  }
}

const MARK = /\{\{(last|trigger|task|n)\}\}/g;

function compileTemplate(text: string, escape: (text: string) => string): (asked: AskedRequest) => string {
  if (text.search(MARK) < 0) return () => text;
  return (asked) =>
    text.replace(MARK, (_, name: 'last' | 'trigger' | 'task' | 'n') =>
      name === 'n' ? String(asked.answer) : escape(asked[name]),
    );
}

function jsonText(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function failureCode(code: string, index: number): ModelFailure['code'] {
  if (isFailureCode(code)) return code;
  const known = ERROR_CODES.filter(isFailureCode).join(', ');
  throw new TroupeError(
    'config_invalid',
    `rules[${index}].fail.code is ${JSON.stringify(code)}, not one of ${known}`,
    {
      rule: index,
    },
  );
}

function isFailureCode(code: string): code is ModelFailure['code'] {
  const isModels = code.startsWith('provider_') || code === 'context_overflow';
  return isModels && (ERROR_CODES as readonly string[]).includes(code);
}
