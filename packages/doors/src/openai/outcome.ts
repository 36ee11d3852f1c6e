import { type Answer, type AskedReply, ERROR_CODES, parseExact, policyOf } from '../troupe.ts';

export interface ApiError {
  code: string;
  message: string;
  type: 'troupe_error';
}

/** `isPermanent`: the same request would fail again. */
export type Failed = ApiError & { isPermanent: boolean };

/** Nobody has answered and somebody failed, or the answer has another form than the client can read. */
export function failureOf(answer: Answer, format: AskedReply | null): Failed | null {
  const { outcome, replies, failures, waits } = answer;
  const [failure] = failures;
  if (outcome === 'failed' && replies.length === 0 && failure) {
    const { agent, code, message } = failure;
    const known = ERROR_CODES.find((each) => each === code);
    // A model that was asked again and again gives no other form to another request.
    const isPermanent =
      known === undefined || known === 'provider_invalid_reply' || policyOf(known) !== 'retry';
    return { ...failed(code, `@${agent}: ${message}`), isPermanent };
  }
  if (!format || format.calls === 'optional' || answer.data !== undefined) return null;
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

/** What an answer consists of for a client. `args`: JSON. */
export type AnswerPart = { kind: 'words'; text: string } | { kind: 'call'; name: string; args: string };

/** `said`: all that agents have said. In a form that the client asked for, the last reply alone counts. */
export function partsOf(answer: Answer, said: string, format: AskedReply | null): AnswerPart[] {
  if (!format) return [{ kind: 'words', text: said }];
  if (format.tool !== undefined) return [{ kind: 'call', name: format.tool, args: answer.text }];
  if (format.calls === undefined) return [{ kind: 'words', text: answer.text }];
  const { data } = answer as { data?: { say?: unknown; calls?: unknown } };
  if (typeof data !== 'object' || data === null || !Array.isArray(data.calls))
    return [{ kind: 'words', text: said }];
  const { say, calls } = parseExact(answer.text) as {
    say: string;
    calls: { name: string; arguments: unknown }[];
  };
  const words: AnswerPart[] = say === '' && calls.length > 0 ? [] : [{ kind: 'words', text: say }];
  return [
    ...words,
    ...calls.map(({ name, arguments: args }): AnswerPart => ({
      kind: 'call',
      name,
      args: JSON.stringify(args),
    })),
  ];
}
