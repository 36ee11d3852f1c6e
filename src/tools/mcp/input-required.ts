import * as z from 'zod';
import { tryParse } from '../../events/index.ts';
import type { ToolContext, ToolText } from '../tool.ts';

const MAX_QUESTIONS = 20;

export const InputRequired = z.object({
  resultType: z.literal('input_required'),
  inputRequests: z
    .record(z.string(), z.object({ method: z.string(), params: z.unknown() }))
    .refine((asked) => Object.keys(asked).length <= MAX_QUESTIONS, `more than ${MAX_QUESTIONS} questions`)
    .default({}),
  requestState: z.string().optional(),
});
/** Result of a call that the server runs only after people have answered. The call has had no effect yet. */
export type InputRequired = z.infer<typeof InputRequired>;

/** Result of a call that ran, as the model reads it. */
export interface Answered {
  text: string;
  isError: boolean;
}

/** What a repeated call sends in addition. */
interface Input {
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

/** Most times that a server may ask again after an answer. */
const MAX_ROUNDS = 10;
/** Most calls whose progress is kept. A call that is dropped asks its questions again. */
const MAX_WAITING = 1_000;

/**
 * Asks people a server's questions. Invariants:
 * Q1 An answer is taken from the log, where an entitled person gave it, and never from the model.
 * Q2 An answer counts once: in the turn that it woke, and for the call that asked, by its tool and arguments.
 * Q3 Only progress is kept in memory. If it is lost, the call begins again, which is safe, because it has had no effect yet.
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

  /** Takes the answers that have come. Returns the next question, or null if all are answered. */
  function take(
    state: Waiting,
    context: AskContext,
  ): { state: Waiting; text: string; choices?: string[] } | null {
    for (const [key, { method, params }] of Object.entries(state.required.inputRequests)) {
      if (Object.hasOwn(state.responses, key)) continue;
      if (method !== 'elicitation/create')
        throw new Error(`its server asks for ${method.slice(0, 80)}, which Troupe does not offer`);
      const form = tryParse(Form, params);
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

/** One field of a form, as servers may describe it. The server itself checks what is not understood here. */
const Field = z.looseObject({
  type: z.string().optional(),
  title: z.string().optional(),
  description: z.string().optional(),
  enum: z.array(z.string()).max(1_000).optional(),
  oneOf: z
    .array(z.looseObject({ const: z.string(), title: z.string().optional() }))
    .max(1_000)
    .optional(),
});
type Field = z.infer<typeof Field>;

export const Form = z.object({
  message: z.string(),
  requestedSchema: z.looseObject({
    properties: z.record(z.string(), Field).default({}),
    required: z.array(z.string()).default([]),
  }),
});
/** A server's question to a person: its text, and the fields of the answer. */
export type Form = z.infer<typeof Form>;

type FormAnswer =
  | { action: 'accept'; content: Record<string, unknown> }
  | { action: 'decline' }
  | { problem: string };

const MESSAGE_CHARACTERS = 2_000;
const MAX_CHOICES = 18;
const YES = /^(?:yes|y|true|ok|accept)$/i;
const NO = /^(?:no|n|false)$/i;
const DECLINE = /^decline$/i;

/** The question that people see. It marks which text is the server's. */
export function questionOf(
  from: string,
  { message, requestedSchema }: Form,
): { text: string; choices?: string[] } {
  const fields = Object.entries(requestedSchema.properties);
  const [only] = fields;
  const asked = `The tool ${from} asks: ${message.slice(0, MESSAGE_CHARACTERS).toWellFormed()}`;
  if (!only) return { text: asked, choices: ['accept', 'decline'] };
  if (fields.length > 1) {
    const lines = fields.map(([name, field]) => {
      const isRequired = requestedSchema.required.includes(name);
      return `- ${name} (${kindOf(field)}${isRequired ? ', required' : ''})${field.description ? `: ${field.description.slice(0, MESSAGE_CHARACTERS)}` : ''}`;
    });
    const how = 'Answer with a line "name: value" for each, or with "decline".';
    return { text: [asked, ...lines, how].join('\n').toWellFormed() };
  }
  const values = only[1].type === 'boolean' ? ['yes', 'no'] : valuesOf(only[1]);
  if (values.length > 0 && values.length <= MAX_CHOICES)
    return { text: asked, choices: [...values, 'decline'] };
  return { text: `${asked}\nAnswer with ${only[0]} (${kindOf(only[1])}), or with "decline".`.toWellFormed() };
}

/** Reads a person's answer to a form. Pure. */
export function formAnswer({ requestedSchema }: Form, said: string): FormAnswer {
  const text = said.trim();
  if (DECLINE.test(text)) return { action: 'decline' };
  const fields = Object.entries(requestedSchema.properties);
  const [only] = fields;
  if (!only) {
    if (YES.test(text)) return { action: 'accept', content: {} };
    return NO.test(text) ? { action: 'decline' } : { problem: 'answer with "accept" or "decline"' };
  }
  const given = fields.length === 1 ? { [only[0]]: text } : linesOf(text);
  const content: Record<string, unknown> = {};
  for (const [name, field] of fields) {
    const written = Object.hasOwn(given, name) ? given[name] : undefined;
    if (written === undefined) {
      if (requestedSchema.required.includes(name)) return { problem: `${name} is missing` };
      continue;
    }
    const value = valueOf(field, written);
    if (value === undefined) return { problem: `${name} is not ${kindOf(field)}` };
    content[name] = value;
  }
  return { action: 'accept', content };
}

function linesOf(text: string): Record<string, string> {
  const pairs = text.split('\n').flatMap((line) => {
    const colon = line.indexOf(':');
    return colon < 0
      ? []
      : [
          [
            line
              .slice(0, colon)
              .replace(/^[-*\s]+/, '')
              .trim(),
            line.slice(colon + 1).trim(),
          ],
        ];
  });
  return Object.fromEntries(pairs) as Record<string, string>;
}

/** Undefined if the text is not a value of the field. */
function valueOf(field: Field, text: string): unknown {
  if (field.type === 'boolean') return YES.test(text) ? true : NO.test(text) ? false : undefined;
  if (field.type === 'number' || field.type === 'integer') {
    const number = text === '' ? Number.NaN : Number(text);
    const fits = field.type === 'integer' ? Number.isInteger(number) : Number.isFinite(number);
    return fits ? number : undefined;
  }
  if (field.type === 'array') return text.split(',').map((part) => part.trim());
  const values = valuesOf(field);
  if (values.length === 0) return text;
  const isMeant = (value: string) => value.toLowerCase() === text.toLowerCase();
  return (
    values.find(isMeant) ?? field.oneOf?.find(({ title }) => title !== undefined && isMeant(title))?.const
  );
}

function valuesOf({ enum: values, oneOf }: Field): string[] {
  return values ?? oneOf?.map((each) => each.const) ?? [];
}

function kindOf(field: Field): string {
  if (field.type === 'boolean') return 'yes or no';
  const values = valuesOf(field);
  return values.length > 0 ? `one of ${values.slice(0, MAX_CHOICES).join(', ')}` : (field.type ?? 'a text');
}
