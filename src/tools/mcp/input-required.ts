import * as z from 'zod';
import type { ToolContext, ToolText } from '../tool.ts';
import { Form, formAnswer, questionOf } from './form.ts';

const MAX_QUESTIONS = 20;

export const InputRequired = z.object({
  resultType: z.literal('input_required'),
  inputRequests: z
    .record(z.string(), z.object({ method: z.string(), params: z.unknown() }))
    .refine((asked) => Object.keys(asked).length <= MAX_QUESTIONS, `more than ${MAX_QUESTIONS} questions`)
    .default({}),
  requestState: z.string().optional(),
});
/** The result of a call that a server makes only after people have answered. The call has had no effect. */
export type InputRequired = z.infer<typeof InputRequired>;

/** The result of a call that ran: what the model reads. */
export interface Answered {
  text: string;
  isError: boolean;
}

/** What a repeated call brings along. */
export interface Input {
  inputResponses: Record<string, unknown>;
  requestState?: string;
}

type Send = (input: Input | null) => Promise<Answered | InputRequired>;
type AskContext = Pick<ToolContext, 'address' | 'answers'>;

interface Waiting {
  required: InputRequired;
  responses: Record<string, unknown>;
  /** The open question, as people see it. */
  asked: { key: string; text: string };
}

/** A server may ask again after an answer, but not without end. */
const MAX_ROUNDS = 10;
/** Calls whose progress is remembered. One that is forgotten asks its questions again. */
const MAX_WAITING = 1_000;

/**
 * Takes the questions of a server to people. Invariants:
 * Q1 An answer is taken from the log, where an entitled person gave it, and never from the model.
 * Q2 An answer counts in the turn that it woke, once, and for the call that asked: the same tool with the same arguments.
 * Q3 Only progress is kept in memory. Where it is lost, the server begins again, which it can: such a call has had no effect.
 */
export function createAsking(
  from: string,
): (args: unknown, context: AskContext, send: Send) => Promise<Answered | ToolText> {
  const waiting = new Map<string, Waiting>();
  const used = new WeakSet<object>();

  return async function askAndCall(args, context, send) {
    const key = JSON.stringify([context.address, args]);
    let state = waiting.get(key) ?? null;
    waiting.delete(key);
    if (!state) {
      const first = await send(null);
      if (!('resultType' in first)) return first;
      state = begin(first);
    }
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const asked = take(state, context);
      if (asked) {
        if (waiting.size >= MAX_WAITING) waiting.delete(waiting.keys().next().value ?? '');
        waiting.set(key, asked.state);
        return questionText(from, asked.text, asked.choices);
      }
      const { requestState } = state.required;
      const next = await send({
        inputResponses: state.responses,
        ...(requestState !== undefined && { requestState }),
      });
      if (!('resultType' in next)) return next;
      state = begin(next);
    }
    throw new Error(`its server asked more than ${MAX_ROUNDS} times in a row`);
  };

  /** Takes the answers that are there. The next question, or null if all are answered. */
  function take(
    state: Waiting,
    context: AskContext,
  ): { state: Waiting; text: string; choices?: string[] } | null {
    for (const [key, { method, params }] of Object.entries(state.required.inputRequests)) {
      if (Object.hasOwn(state.responses, key)) continue;
      if (method !== 'elicitation/create')
        throw new Error(`its server asks for ${method.slice(0, 80)}, which Troupe does not offer`);
      const form = Form.safeParse(params);
      if (!form.success)
        throw new Error('its server asks in a way that is no form, which Troupe does not pass on');
      const question = questionOf(from, form.data);
      const isOpen = state.asked.key === key;
      const expected = isOpen ? state.asked.text : question.text;
      const answer = context.answers.find((each) => each.question === expected && !used.has(each));
      if (!answer) return ask(state, key, { ...question, text: expected });
      used.add(answer);
      if (answer.outcome !== 'answered') {
        state.responses[key] = { action: 'cancel' };
        continue;
      }
      const said = formAnswer(form.data, answer.content);
      if ('problem' in said)
        return ask(state, key, {
          ...question,
          text: `${question.text}\n[not yet understood: ${said.problem}]`,
        });
      state.responses[key] = said;
    }
    return null;
  }
}

function ask(state: Waiting, key: string, question: { text: string; choices?: string[] }) {
  return { state: { ...state, asked: { key, text: question.text } }, ...question };
}

function begin(required: InputRequired): Waiting {
  return { required, responses: {}, asked: { key: '', text: '' } };
}

function questionText(from: string, text: string, choices: string[] | undefined): ToolText {
  return {
    text: `${from} is not done: its server asks people first. When you are woken with the answer, make the same call with the same arguments again; the answer is passed on for you.`,
    request: { kind: 'question', text, by: [], wait: true, join: 'all', ...(choices && { choices }) },
  };
}
