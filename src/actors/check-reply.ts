import { JsonData } from '../events/index.ts';
import type { ModelFailure } from '../providers/provider.ts';
import type { ReplySchema } from './member.ts';
import type { ModelAnswer } from './turn-run.ts';

interface Answered {
  kind: 'answered';
  answer: ModelAnswer;
}

/** A model that thinks in Markdown puts its data into a fence. */
const FENCE = /^\s*```(?:json)?[^\S\n]*\n([^]*?)\n?\s*```\s*$/i;

/** Holds the final answer of a turn against what the agent's replies must be. One that does not fit is a failed call. */
export async function checkReply(
  reply: ReplySchema | null,
  outcome: Answered,
): Promise<Answered | { kind: 'failed'; failure: ModelFailure }> {
  const { answer } = outcome;
  if (!reply || answer.calls.length > 0 || answer.stop === 'refusal') return outcome;
  const text = FENCE.exec(answer.text)?.[1] ?? answer.text;
  const value = parseJson(text);
  if (value instanceof SyntaxError) {
    return failed(
      answer.stop === 'length' ? 'it was cut off at maxOutputTokens' : `it is no JSON: ${value.message}`,
    );
  }
  const checked = await reply.check(value);
  if ('problem' in checked) return failed(checked.problem);
  if (!JsonData.safeParse(checked.data).success) return failed('it is nested too deeply');
  return { kind: 'answered', answer: { ...answer, text, data: checked.data } };
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
