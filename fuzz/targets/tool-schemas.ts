import { below, pick, type Random } from '../../sim/random.ts';
import { withFittedTools } from '../../src/providers/fit-tools.ts';
import { quirksOf, toolRules } from '../../src/providers/quirks.ts';
import type { ModelEvent } from '../../src/providers/provider.ts';
import {
  COMMON_KEYS,
  isSchema,
  type Schema,
  type ToolRules,
  wholeToolSchema,
} from '../../src/providers/tool-schema.ts';
import { sampleRequest } from '../../packages/testing/src/provider-conformance.ts';
import { mutate } from '../mutate.ts';
import { nastyText, nastyValue } from '../nasty.ts';
import { Broken, type Target } from '../target.ts';

/**
 * Schemas of tools, as servers may list them, to the rules of each vendor.
 * S1  What is sent has one object at its top, and names of properties that the vendor takes; or the tool is left out.
 * S2  Arguments under the sent names arrive under the real ones, and nothing else of their text changes.
 * S3  What is sent is not far longer than the schema.
 */
export interface SchemaInput {
  schema: Schema;
}

const RULES: Record<string, ToolRules | undefined> = {
  anthropic: { shape: wholeToolSchema, keys: COMMON_KEYS },
  openai: toolRules(quirksOf('https://api.openai.com/v1')),
  gemini: toolRules(quirksOf('https://generativelanguage.googleapis.com/v1beta/openai')),
  unknown: toolRules({}),
};
const REFUSED = ['anyOf', 'oneOf', 'allOf', 'not', 'enum', '$ref'];
/** References of Gemini's form are replaced by what they name, up to this limit. */
const MOST_ADDED = 1_000_000;
/** What is told about a property, and the moves into alternatives and definitions. */
const MOST_TIMES = 4;

export function toolSchemasTarget(rules: Record<string, ToolRules | undefined> = RULES): Target<SchemaInput> {
  return {
    name: 'tool-schemas',
    keepKeys: true,
    make: (random) => ({
      schema: isSchemaOr(random() < 0.6 ? schemaOf(random, 0) : mutate(random, schemaOf(random, 0))),
    }),
    async run({ schema }) {
      const tools = [{ name: 't', description: '', parameters: schema }];
      let sent = 0;
      for (const [vendor, rule] of Object.entries(rules)) {
        const { request, restore } = withFittedTools(sampleRequest({ tools }), rule);
        const [shown] = request.tools;
        if (!shown) continue;
        sent += 1;
        checkShown(vendor, shown.parameters, rule, JSON.stringify(schema).length);
        await checkNames(shown.parameters, restore);
      }
      return sent === 0 ? 'left out' : 'accepted';
    },
  };
}

function checkShown(vendor: string, shown: Schema, rule: ToolRules | undefined, listed: number): void {
  if (shown['type'] !== 'object' || REFUSED.some((name) => name in shown))
    throw new Broken(`${vendor} gets more than an object at the top`);
  if (JSON.stringify(shown).length > MOST_TIMES * listed + MOST_ADDED)
    throw new Broken(`${vendor} gets far more than there was`);
  const { properties } = shown;
  const odd = Object.keys(isSchema(properties) ? properties : {}).find(
    (name) => rule?.keys?.test(name) === false,
  );
  if (odd !== undefined) throw new Broken(`${vendor} gets the property ${JSON.stringify(odd)}`);
}

/** A call with each property of the top. */
async function checkNames(
  { properties }: Schema,
  restore: (events: AsyncIterable<ModelEvent>) => AsyncIterable<ModelEvent>,
): Promise<void> {
  const names = Object.keys(isSchema(properties) ? properties : {}).slice(0, 20);
  const args = `{${names.map((name) => `${JSON.stringify(name)}: 12345678901234567890`).join(',')}}`;
  const calls: string[] = [];
  for await (const event of restore(called(args))) if (event.type === 'call') calls.push(event.call.args);
  const [restored = ''] = calls;
  if (Object.keys(JSON.parse(restored) as object).length !== names.length)
    throw new Broken('two properties have one name');
  if (restored.split('12345678901234567890').length !== names.length + 1)
    throw new Broken('a value has changed');
}

async function* called(args: string): AsyncGenerator<ModelEvent> {
  yield { type: 'call', call: { id: 'c', name: 't', args } };
}

function isSchemaOr(value: unknown): Schema {
  return isSchema(value) ? value : {};
}

const KEYS = [
  'a',
  'b',
  '$.x',
  'with space',
  'k'.repeat(70),
  '_.x',
  '名',
  '',
  '__proto__',
  '$ref',
  '2fa',
] as const;

function schemaOf(random: Random, depth: number): Record<string, unknown> {
  if (depth > 3) return { type: 'string' };
  const part = () => schemaOf(random, depth + 1);
  const parts = () => Array.from({ length: below(random, 4) }, part);
  const keywords: Record<string, () => unknown> = {
    type: () =>
      pick(random, [
        'object',
        'object',
        'string',
        'array',
        ['string', 'null'],
        ['object', 'null'],
        'any',
        null,
      ]),
    properties: () =>
      Object.fromEntries(Array.from({ length: below(random, 4) }, () => [pick(random, KEYS), part()])),
    required: () => pick(random, [['a'], ['a', 'a', 'zz'], true, ['$.x']]),
    anyOf: parts,
    oneOf: parts,
    allOf: parts,
    items: () => (random() < 0.5 ? part() : parts()),
    $ref: () =>
      pick(random, [
        '#',
        '#/$defs/a',
        '#/$defs/b',
        '#/properties/a',
        'https://example.com/x',
        '#/%',
        '#/$defs/a/~1',
      ]),
    $defs: () => ({ a: part(), b: part() }),
    enum: () => pick(random, [[], ['x', 'y'], [1, null], [{ a: 1 }]]),
    const: () => nastyValue(random),
    not: part,
    additionalProperties: () => pick(random, [true, false, {}]),
    description: () => nastyText(random),
    minimum: () => pick(random, [1, '1', null]),
    exclusiveMinimum: () => pick(random, [true, 1]),
    minLength: () => pick(random, [1, -1, '2']),
  };
  const names = Object.keys(keywords).filter(() => random() < (depth === 0 ? 0.4 : 0.25));
  return Object.fromEntries(names.map((name) => [name, keywords[name]?.()]));
}
