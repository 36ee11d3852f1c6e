import * as z from 'zod';
import { ERROR_CODES, TroupeError } from '../errors.ts';
import type { ModelFailure, ModelRequest } from './provider.ts';
import { Script } from './settings.ts';

/** What a rule looks at, computed only when a rule asks: a prompt may hold thousands of messages. */
export class AskedRequest {
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

  /** Number of the answer that is asked for: one more than the agent's own in the prompt. Steps are not answers. */
  get answer(): number {
    if (this.#answer !== undefined) return this.#answer;
    let answers = 0;
    for (const message of this.request.messages) {
      if (message.role === 'assistant' && !message.calls?.length) answers += 1;
    }
    return (this.#answer = answers + 1);
  }
}

export interface CompiledRule {
  matches: (asked: AskedRequest) => boolean;
  reply: (asked: AskedRequest) => string;
  calls: readonly { name: string; args: (asked: AskedRequest) => string }[];
  delayMs: number;
  chunkDelayMs: number;
  chunk: number;
  fail: { after: number; error: ModelFailure } | undefined;
}

/** Checks a script and prepares it, so that a rule costs microseconds. Throws `config_invalid`. */
export function compileScript(script: unknown): CompiledRule[] {
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
      // A text is taken as written, which lets a script send arguments that are not JSON.
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
