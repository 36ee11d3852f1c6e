import type { EventDraft } from '../../events/index.ts';
import { calledInText } from './called-in-text.ts';
import { type AnswerFault, type ModelAnswer, ownDraft, type TurnRun } from './turn-run.ts';

/** Most notes in a row, as many as a failed call is repeated. */
const MOST_NOTES = 3;

/** The fault that the end of the answer shows; null if there is none. */
export function faultOfEnd(
  { text, calls, stop, reasoning }: ModelAnswer,
  {
    broken,
    hasTools,
    maxOutputTokens,
  }: { broken: string | undefined; hasTools: boolean; maxOutputTokens: number },
): AnswerFault | null {
  if (stop === 'refusal') return null;
  const limit = `maxOutputTokens (${maxOutputTokens})`;
  const called = broken ? ` of \`${broken}\`` : '';
  if (broken !== undefined && stop === 'length')
    return {
      note: `Your answer was cut off at its limit of ${maxOutputTokens} tokens, within your call${called}. That call was not made. Make it again with fewer words before it and shorter arguments; divide long work among several calls.`,
      code: 'provider_reply_too_long',
      message: `the answer was cut off at ${limit} within a call${called}, which was not made`,
    };
  if (broken !== undefined)
    return {
      note: `Your call${called} could not be read and was not made. ${hasTools ? 'Make it again as one tool call, with arguments that are one JSON object' : 'You have no tools here: answer in words'}.`,
      code: 'provider_invalid_reply',
      message: `the answer holds a call${called} that cannot be read, which was not made`,
    };
  if (stop !== 'length' || calls.length > 0 || text.trim() !== '') return null;
  const spent = reasoning ? ': the model has spent all of it on reasoning' : '';
  return {
    note: null,
    code: 'provider_reply_too_long',
    message: `the answer reached ${limit} before a word was said${spent}; raise maxOutputTokens of the agent, or lower its effort`,
  };
}

/** A call among the words, of which nothing runs: nobody knows whether it was meant, and a server lost it if it was. */
export function faultOfText(text: string, tools: readonly { name: string }[]): AnswerFault | null {
  const called = calledInText(
    text,
    tools.map(({ name }) => name),
  );
  if (called === null) return null;
  const what = `holds a call of \`${called}\` written as text`;
  return {
    note: `Your answer ${what}. Nothing was run. Make it as a tool call; or give your answer once more if you only talk about it.`,
    code: 'provider_invalid_reply',
    message: `the answer ${what}, which was not made. If this goes on, the server does not read the calls of this model: start it with a parser for them (vLLM and SGLang: --tool-call-parser, llama.cpp: --jinja), or take a model that calls tools`,
    isTaken: true,
  };
}

/** The note to the model, and the same for people. */
export function faultDrafts(run: TurnRun, { note, code, message }: AnswerFault): EventDraft[] {
  const { step } = run;
  return [
    { ...ownDraft(run, `fault:${step}`), kind: 'error', body: { code, message, step: step + 1 } },
    ...(note === null
      ? []
      : [
          {
            ...ownDraft(run, `again:${step}`),
            kind: 'injection' as const,
            body: { content: note, oneStep: true },
          },
        ]),
  ];
}

export function isFaultNote({ kind, id }: EventDraft): boolean {
  return kind === 'injection' && /:again:\d+$/.test(id);
}

/** Whether the model is told: not if it was told in vain, and not if no step is left. */
export function mayTell({ outputs, step, deps }: TurnRun, { note, isTaken }: AnswerFault): boolean {
  const worked = outputs.findLastIndex(({ kind }) => kind === 'tool.result');
  const told = outputs.slice(worked + 1).filter(isFaultNote).length;
  return note !== null && told < (isTaken ? 1 : MOST_NOTES) && step + 1 < deps.limits.maxSteps;
}
