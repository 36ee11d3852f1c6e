import * as z from 'zod';

/** One field of a form, as servers may describe it. What is not understood is left to the server's own check. */
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
/** A question of a server to a person: its words, and the fields of the answer. */
export type Form = z.infer<typeof Form>;

export type FormAnswer =
  | { action: 'accept'; content: Record<string, unknown> }
  | { action: 'decline' }
  | { problem: string };

const MESSAGE_CHARACTERS = 2_000;
const MAX_CHOICES = 18;
const YES = /^(?:yes|y|true|ok|accept)$/i;
const NO = /^(?:no|n|false)$/i;
const DECLINE = /^decline$/i;

/** The question that people see. The words of the server are marked as such. */
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

/** What a person's words say to a form. Pure. */
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

/** Undefined: the words are no value of the field. */
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
