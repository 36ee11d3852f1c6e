import { messageOf } from '../shared/format.ts';

/** A field for one argument. `text` is what was typed, even for numbers. */
export type ArgField = { name: string } & (
  | { kind: 'text' | 'number'; text: string }
  | { kind: 'switch'; isOn: boolean }
);

/** Arguments as a person edits them: one field for each, or all as JSON. */
export type ArgsForm = { as: 'fields'; fields: readonly ArgField[] } | { as: 'json'; text: string };

type Args = Record<string, unknown>;
/** Problems by the name of the field; those of JSON have the empty name. */
export type TypedArgs = { args: Args } | { problems: ReadonlyMap<string, string> };

/** Most fields of a form, because nobody reads a longer one from top to bottom. */
const MAX_FIELDS = 20;
const INDENT = 2;

/** Fields for an object that has only texts, numbers and booleans; else JSON. */
export function formOf(json: string): ArgsForm {
  const read = readArgs(json);
  if (typeof read === 'string') return { as: 'json', text: json };
  const entries = Object.entries(read);
  const fields = entries.flatMap(([name, value]) => fieldOf(name, value));
  const isFlat = fields.length === entries.length && fields.length > 0 && fields.length <= MAX_FIELDS;
  return isFlat ? { as: 'fields', fields } : { as: 'json', text: JSON.stringify(read, null, INDENT) };
}

function fieldOf(name: string, value: unknown): ArgField[] {
  if (typeof value === 'string') return [{ name, kind: 'text', text: value }];
  if (typeof value === 'number') return [{ name, kind: 'number', text: String(value) }];
  return typeof value === 'boolean' ? [{ name, kind: 'switch', isOn: value }] : [];
}

/** What was typed, as JSON. Text that is not a number stays text. */
export function asJson(form: ArgsForm): ArgsForm {
  if (form.as === 'json') return form;
  const entries = form.fields.map((field) => [field.name, valueOf(field) ?? ('text' in field && field.text)]);
  return { as: 'json', text: JSON.stringify(Object.fromEntries(entries), null, INDENT) };
}

export function argsOf(form: ArgsForm): TypedArgs {
  if (form.as === 'json') {
    const read = readArgs(form.text);
    return typeof read === 'string' ? { problems: new Map([['', read]]) } : { args: read };
  }
  const values = form.fields.map((field) => [field.name, valueOf(field)] as const);
  const wrong = values.filter(([, value]) => value === undefined);
  if (wrong.length === 0) return { args: Object.fromEntries(values) };
  return { problems: new Map(wrong.map(([name]) => [name, 'Write a number, such as 12.5'])) };
}

function valueOf(field: ArgField): string | number | boolean | undefined {
  if (field.kind === 'switch') return field.isOn;
  if (field.kind === 'text') return field.text;
  const typed = field.text.trim();
  const number = Number(typed);
  return typed !== '' && isExact(number) ? number : undefined;
}

/** The arguments, or the problem with their text. */
function readArgs(json: string): Args | string {
  let inexact = false;
  try {
    // A model may write nothing for a call without arguments.
    const read: unknown = JSON.parse(json.trim() || '{}', (_, value: unknown) => {
      inexact ||= typeof value === 'number' && !isExact(value);
      return value;
    });
    if (inexact)
      return 'A number is too large to be sent exactly: write it as a text, or approve the call as it is';
    if (typeof read === 'object' && read !== null && !Array.isArray(read)) return read as Args;
    return 'Write a JSON object, such as {"to": "ben"}';
  } catch (error) {
    return `Not JSON: ${messageOf(error)}`;
  }
}

/** Larger integers would be rounded. */
function isExact(value: number): boolean {
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
}
