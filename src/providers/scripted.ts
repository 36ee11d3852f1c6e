import type { Clock } from '../base/clock.ts';
import type { ToolCall, Usage } from '../events/index.ts';
import { mintCallId } from './call-text.ts';
import {
  type ModelEvent,
  type ModelFailure,
  type ModelRequest,
  type Provider,
  STATELESS,
} from './provider.ts';
import { Script } from './settings.ts';
import * as z from 'zod';
import { ERROR_CODES, TroupeError } from '../base/errors.ts';

/**
 * A model that follows a script: the first matching rule answers. The answer depends on the request alone, so that a
 * retry after a crash gets the same answer from any process.
 */
export function createScripted({ script, clock }: { script: Script; clock: Clock }): Provider {
  const rules = compileScript(script);
  return {
    name: 'scripted',
    capabilities: { ...STATELESS, interleavedSystem: true, reportsUsage: false },
    stream: (request, { signal }) => answer(rules, request, clock, signal),
  };
}

async function* answer(
  rules: readonly CompiledRule[],
  request: ModelRequest,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<ModelEvent> {
  yield { type: 'start' };
  const asked = new AskedRequest(request);
  const rule = rules.find(({ matches }) => matches(asked));
  if (!rule) {
    yield { type: 'failed', error: { code: 'provider_invalid_request', message: noRule(asked) } };
    return;
  }
  const reply = rule.reply(asked);
  const { fail } = rule;
  if (rule.delayMs > 0) await clock.sleep(rule.delayMs, signal);
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

/** What the model writes, piece by piece. Without a length of pieces, calls are only given whole. */
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
    if (chunkDelayMs > 0 && (at < all.length - 1 || fail)) await clock.sleep(chunkDelayMs, signal);
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

/** The index, or the next one if it would split a surrogate pair. */
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
  const { agent, step, call } = asked.request.trace;
  const last = JSON.stringify(asked.last.slice(0, 200));
  return `no rule of the script matches: agent ${agent}, step ${step}, call ${call}, answer ${asked.answer}, last message ${last}`;
}

/** The fields that rules test, computed on demand: a prompt may hold thousands of messages. */
class AskedRequest {
  readonly request: ModelRequest;
  #last: string | undefined;
  #answer: number | undefined;

  constructor(request: ModelRequest) {
    this.request = request;
  }

  /** Text of the last user or tool message. */
  get last(): string {
    return (this.#last ??=
      this.request.messages.findLast(({ role }) => role === 'user' || role === 'tool')?.content ?? '');
  }

  /** Number of the requested answer: one more than the agent's own answers in the prompt. Steps are not answers. */
  get answer(): number {
    if (this.#answer !== undefined) return this.#answer;
    let answers = 0;
    for (const message of this.request.messages) {
      if (message.role === 'assistant' && !message.calls?.length) answers += 1;
    }
    return (this.#answer = answers + 1);
  }
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

/** Validates a script and compiles it, so that a rule takes microseconds. Throws `config_invalid`. */
function compileScript(script: unknown): CompiledRule[] {
  const parsed = Script.safeParse(script);
  if (!parsed.success) {
    throw new TroupeError('config_invalid', `the script is not valid:\n${z.prettifyError(parsed.error)}`);
  }
  return parsed.data.rules.map(compileRule);
}

function compileRule(rule: Script['rules'][number], index: number): CompiledRule {
  const { when, fail } = rule;
  const pattern = compilePattern(when.matches, index);
  return {
    matches(asked) {
      const { trace } = asked.request;
      if ((when.purpose ?? 'turn') !== (trace.purpose ?? 'turn')) return false;
      if (when.agent !== undefined && when.agent !== trace.agent) return false;
      if (when.step !== undefined && when.step !== trace.step) return false;
      if (when.call !== undefined && when.call !== trace.call) return false;
      if (when.contains !== undefined && !asked.last.includes(when.contains)) return false;
      if (pattern && !pattern.test(asked.last)) return false;
      return when.answer === undefined || when.answer === asked.answer;
    },
    reply: compileTemplate(rule.reply, (text) => text),
    calls: rule.calls.map(({ name, args }) => ({
      name,
      // A string is used verbatim, so that a script can send arguments that are not JSON.
      args: compileTemplate(typeof args === 'string' ? args : (JSON.stringify(args) ?? '{}'), jsonText),
    })),
    delayMs: rule.delayMs,
    chunkDelayMs: rule.chunkDelayMs,
    chunk: rule.chunk,
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

function compileTemplate(text: string, escape: (text: string) => string): (asked: AskedRequest) => string {
  if (!/\{\{(last|n)\}\}/.test(text)) return () => text;
  return (asked) =>
    text.replace(/\{\{(last|n)\}\}/g, (_, name) =>
      name === 'n' ? String(asked.answer) : escape(asked.last),
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
