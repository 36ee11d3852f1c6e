import type { Answer } from '../../asking/answer.ts';
import { ERROR_CODES, policyOf } from '../../errors.ts';
import type { ReplyFormat } from './reply-format.ts';

export interface ApiError {
  code: string;
  message: string;
  type: 'troupe_error';
}

/** `isPermanent`: the same request would fail again. */
export type Failed = ApiError & { isPermanent: boolean };

/** Nobody has answered and somebody failed, or the answer has another form than the client can read. */
export function failureOf(answer: Answer, format: ReplyFormat | null): Failed | null {
  const { outcome, replies, failures, waits } = answer;
  const [failure] = failures;
  if (outcome === 'failed' && replies.length === 0 && failure) {
    const { agent, code, message } = failure;
    const known = ERROR_CODES.find((each) => each === code);
    const isPermanent = known === undefined || policyOf(known) !== 'retry';
    return { ...failed(code, `@${agent}: ${message}`), isPermanent };
  }
  if (!format || answer.data !== undefined) return null;
  const [wait] = waits;
  const why = wait
    ? `@${wait.task.owner} waits for people first (${wait.task.id})`
    : `@${replies.at(-1)?.author.id ?? 'nobody'} has answered in words: only the agent that is asked answers in this form`;
  return {
    ...failed('provider_invalid_reply', `the answer has not the form that was asked for: ${why}`),
    isPermanent: true,
  };
}

function failed(code: string, message: string): ApiError {
  return { code, message, type: 'troupe_error' };
}

/** Whether words of the answer are missing, because a model has come to the limit of its output. */
export function isCut({ replies, events }: Answer): boolean {
  const turns = new Set(replies.map(({ turn }) => turn));
  return events.some(
    (event) =>
      event.kind === 'turn.done' &&
      event.body.cut !== undefined &&
      (turns.size === 0 || turns.has(event.turn)),
  );
}
