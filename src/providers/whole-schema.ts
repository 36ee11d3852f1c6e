import { flatTop, isSchema, mapSchema, type Schema, targetOf } from './tool-schema.ts';

const TYPES: readonly unknown[] = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];
const isNumber = (value: unknown) => typeof value === 'number';
const isCount = (value: unknown) => Number.isInteger(value) && (value as number) >= 0;
const isText = (value: unknown) => typeof value === 'string';
const isFlag = (value: unknown) => typeof value === 'boolean';
const isPart = (value: unknown) => isSchema(value) || isFlag(value);
const isParts = (value: unknown) => Array.isArray(value) && value.length > 0;
const isList = (value: unknown) => Array.isArray(value);

function each(names: readonly string[], valid: (value: unknown) => boolean) {
  return Object.fromEntries(names.map((name) => [name, valid]));
}

/** The values that JSON Schema 2020-12 allows its keywords. Vendors check them, and refuse a request for one tool of many. */
const VALID: Readonly<Record<string, (value: unknown) => boolean>> = {
  type: (value) =>
    Array.isArray(value)
      ? value.length > 0 && value.every((each) => TYPES.includes(each))
      : TYPES.includes(value),
  enum: isParts,
  required: isList,
  ...each(
    ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependentRequired'],
    isSchema,
  ),
  ...each(['items', 'additionalProperties', 'contains', 'not', 'if', 'then', 'else'], isPart),
  ...each(['propertyNames', 'unevaluatedItems', 'unevaluatedProperties'], isPart),
  ...each(['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'], isCount),
  ...each(['minContains', 'maxContains'], isCount),
  prefixItems: isParts,
  anyOf: isParts,
  oneOf: isParts,
  allOf: isParts,
  minimum: isNumber,
  maximum: isNumber,
  exclusiveMinimum: isNumber,
  exclusiveMaximum: isNumber,
  multipleOf: (value) => isNumber(value) && (value as number) > 0,
  pattern: isText,
  format: isText,
  title: isText,
  description: isText,
  $comment: isText,
  $ref: isText,
  examples: isList,
  uniqueItems: isFlag,
  deprecated: isFlag,
  readOnly: isFlag,
  writeOnly: isFlag,
};
/** Draft 4: the bound is in `minimum`, and this says that it is excluded. */
const BOUNDS = [
  ['minimum', 'exclusiveMinimum'],
  ['maximum', 'exclusiveMaximum'],
] as const;

/** The schema for vendors that read it whole, with a plain object at its top: what no draft of today allows is mended or left out. */
export function wholeToolSchema(schema: Schema): Record<string, unknown> | null {
  return flatTop(mapSchema(schema, (part) => mended(part, schema)));
}

function mended(part: Schema, root: Schema): Schema {
  const made: Record<string, unknown> = { ...part };
  for (const [bound, excludes] of BOUNDS) {
    if (made[excludes] !== true || !isNumber(made[bound])) continue;
    made[excludes] = made[bound];
    delete made[bound];
  }
  const { required, $ref } = made;
  if (Array.isArray(required)) made['required'] = [...new Set(required.filter(isText))];
  if (typeof $ref === 'string' && targetOf(root, $ref) === undefined) delete made['$ref'];
  mendItems(made);
  for (const [name, value] of Object.entries(made))
    if (Object.hasOwn(VALID, name) && !VALID[name]?.(value)) delete made[name];
  return made;
}

/** Older drafts describe a tuple by a list in `items`. OpenAI demands `items` of every array. */
function mendItems(made: Record<string, unknown>): void {
  const { items, type } = made;
  if (Array.isArray(items)) {
    made['prefixItems'] ??= items;
    made['items'] = items.length > 0 ? { anyOf: items } : {};
  }
  const isArray = type === 'array' || (Array.isArray(type) && type.includes('array'));
  if (isArray && !isPart(made['items'])) made['items'] = {};
}
