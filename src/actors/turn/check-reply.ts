import { JsonData } from '../../events/index.ts';
import type { ModelFailure, ResponseName } from '../../providers/provider.ts';
import type { ReplySchema } from '../engine/agent-runtime.ts';
import type { ModelAnswer } from './turn-run.ts';

interface Answered {
  kind: 'answered';
  answer: ModelAnswer;
  response?: ResponseName;
}

/** Longest reply that is parsed as data; an event may hold far less. */
const MAX_REPLY_CHARS = 4 * 1_024 * 1_024;

/** Checks the final answer of a turn against the agent's reply schema. An answer that does not fit is a failed call. */
export async function checkReply(
  reply: ReplySchema | null,
  outcome: Answered,
): Promise<Answered | { kind: 'failed'; failure: ModelFailure }> {
  const { answer } = outcome;
  if (!reply || answer.calls.length > 0 || answer.stop === 'refusal' || answer.fault) return outcome;
  if (answer.text.length > MAX_REPLY_CHARS)
    return failed(`it has ${answer.text.length} characters, and at most ${MAX_REPLY_CHARS} are read`);
  const text = withoutFence(answer.text);
  const value = parseJson(text);
  if (value instanceof SyntaxError) {
    // A schema that admits a text takes words as they are.
    const said = await reply.check(answer.text);
    if ('data' in said) return { ...outcome, answer: { ...answer, data: said.data } };
    return failed(
      answer.stop === 'length' ? 'it was cut off at maxOutputTokens' : `it is no JSON: ${value.message}`,
    );
  }
  const checked = await reply.check(value);
  if ('problem' in checked) return failed(checked.problem);
  if (!JsonData.safeParse(checked.data).success) return failed('it is nested too deeply');
  return { ...outcome, answer: { ...answer, text, data: checked.data } };
}

const FENCE = /^```(?:json)?[^\S\n]*\n/i;

/** Some models wrap their data in a Markdown fence. */
function withoutFence(text: string): string {
  const whole = text.trim();
  const start = FENCE.exec(whole)?.[0].length;
  const end = whole.length - '```'.length;
  return start === undefined || start > end || !whole.endsWith('```')
    ? text
    : whole.slice(start, end).trimEnd();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    return error; // A SyntaxError, which no JSON text gives.
  }
}

function failed(why: string): { kind: 'failed'; failure: ModelFailure } {
  const message = `the reply does not fit the agent's reply schema: ${why}`;
  return { kind: 'failed', failure: { code: 'provider_invalid_reply', message } };
}
