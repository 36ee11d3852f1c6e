import type { Clock } from '../clock.ts';
import type { Usage } from '../events/index.ts';
import { mintCallId } from './call-text.ts';
import { AskedRequest, compileScript, type CompiledRule } from './compile-script.ts';
import { type ModelEvent, type ModelRequest, type Provider, STATELESS } from './provider.ts';
import type { Script } from './settings.ts';

/**
 * A model that follows a script: the first rule that matches answers. The answer is a function of the request alone
 * (no state between calls), so that a retry after a crash is answered alike, by any process.
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
  let at = 0;
  while (at < said.length && !signal.aborted) {
    const end = rule.chunk > 0 ? boundary(said, at + rule.chunk) : said.length;
    yield { type: 'text', delta: said.slice(at, end) };
    at = end;
    if (rule.chunkDelayMs > 0 && (at < said.length || fail)) await clock.sleep(rule.chunkDelayMs, signal);
  }
  if (signal.aborted) {
    yield { type: 'aborted' };
    return;
  }
  if (fail) {
    yield { type: 'failed', error: { ...fail.error } };
    return;
  }
  let written = reply.length;
  for (const [i, { name, args }] of rule.calls.entries()) {
    const call = { id: mintCallId(request.trace, i), name, args: args(asked) };
    written += call.args.length;
    yield { type: 'call', call };
  }
  yield { type: 'done', stop: rule.calls.length > 0 ? 'calls' : 'end', usage: usageOf(request, written) };
}

/** The index, or the next one where it would cut a surrogate pair. */
function boundary(text: string, index: number): number {
  const code = text.charCodeAt(index - 1);
  return index < text.length && code >= 0xd800 && code <= 0xdbff ? index + 1 : index;
}

const SAMPLES = 32;

/** Four characters to a token; of a long prompt only a sample is measured, as this runs in benchmarks. */
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
