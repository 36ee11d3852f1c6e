type Fields = Record<string, unknown>;

export const text = { type: 'string' };
/** Schemas of tools as MCP servers list them, and as generators write them. */
export const SCHEMAS: Record<string, Fields> = {
  'no properties': { type: 'object' },
  'nothing at all': {},
  'anyOf beside its properties': {
    type: 'object',
    properties: { a: text, b: text },
    anyOf: [{ required: ['a'] }, { required: ['b'] }],
  },
  'a union of objects': {
    type: 'object',
    oneOf: [{ properties: { kind: { const: 'a' } } }, { properties: { kind: { const: 'b' } } }],
  },
  'a union without a type': {
    anyOf: [
      { type: 'object', properties: { a: text }, required: ['a'] },
      { type: 'object', properties: { b: text } },
    ],
  },
  'an intersection': {
    allOf: [{ type: 'object', properties: { a: text }, required: ['a'] }, { $ref: '#/$defs/b' }],
    $defs: { b: { type: 'object', properties: { b: { type: 'number' } } } },
  },
  'a reference at the top': { $ref: '#/$defs/a', $defs: { a: { type: 'object', properties: { a: text } } } },
  'alternatives within alternatives': {
    type: 'object',
    anyOf: [{ oneOf: [{ properties: { a: text } }, { allOf: [{ properties: { b: text } }] }] }],
  },
  'if, not and enum at the top': {
    type: 'object',
    properties: { a: text },
    not: { required: ['b'] },
    enum: [{ a: 'x' }],
    if: { required: ['a'] },
  },
  'a top that may be null': { type: ['object', 'null'], properties: { a: text } },
  'keys with $, < and spaces': {
    type: 'object',
    properties: { '$.xgafv': text, 'StartTime<': text, 'with space': text, '': text },
    required: ['StartTime<'],
  },
  'keys in other scripts': { type: 'object', properties: { 名前: text, größe: { type: 'number' } } },
  'a key of 70 characters': {
    type: 'object',
    properties: { ['k'.repeat(70)]: text, ['k'.repeat(71)]: text },
  },
  'odd keys within': {
    type: 'object',
    properties: {
      a: { type: 'array', items: { type: 'object', properties: { '@type': text }, required: ['@type'] } },
    },
  },
  'a key that begins with a number': { type: 'object', properties: { '2fa': text } },
  'a field named $ref': { type: 'object', properties: { $ref: text } },
  'lists of types': {
    type: 'object',
    properties: {
      a: { type: ['string', 'null'] },
      b: { type: ['array', 'null'], items: text },
      c: { type: ['string', 'number', 'object'] },
    },
  },
  'a type beside anyOf': {
    type: 'object',
    properties: {
      a: { type: 'object', properties: { x: text }, anyOf: [{ required: ['x'] }, {}] },
      b: { type: 'string', anyOf: [{ enum: ['x'] }, { minLength: 3 }] },
    },
  },
  'null among alternatives': {
    type: 'object',
    properties: { a: { anyOf: [text, { type: 'null' }], description: 'A.' } },
  },
  'fixed values': {
    type: 'object',
    properties: {
      a: { const: 'x' },
      b: { const: 1 },
      c: { enum: ['x', 1, null] },
      d: { enum: [1, 2] },
      e: { type: 'boolean', const: true },
    },
  },
  anything: { type: 'object', properties: { a: {}, b: true, c: { description: 'C.' } } },
  tuples: {
    type: 'object',
    properties: {
      a: { type: 'array', items: [text, { type: 'number' }] },
      b: { type: 'array', prefixItems: [text] },
    },
  },
  'lists of nothing said': {
    type: 'object',
    properties: { a: { type: 'array' }, b: { type: ['array', 'null'] } },
  },
  'older drafts': {
    $schema: 'http://json-schema.org/draft-04/schema#',
    type: 'object',
    properties: {
      a: { type: 'number', minimum: 1, exclusiveMinimum: true },
      b: { type: 'string', required: true },
    },
  },
  'what is no schema': {
    type: 'object',
    properties: {
      a: { type: 'any' },
      b: { enum: [] },
      c: { type: 'string', minLength: '3', pattern: 4 },
      d: null,
    },
    required: 'a',
  },
  'a required property that is not there': {
    type: 'object',
    properties: { a: text },
    required: ['a', 'b', 'a'],
  },
  'references that lead nowhere': {
    type: 'object',
    properties: { a: { $ref: '#/$defs/none' }, b: { $ref: 'https://example.com/b.json' } },
  },
  'a schema that names itself': {
    type: 'object',
    properties: { children: { type: 'array', items: { $ref: '#' } }, left: { $ref: '#/$defs/node' } },
    $defs: { node: { type: 'object', properties: { left: { $ref: '#/$defs/node' } } } },
  },
  'intersections within': {
    type: 'object',
    properties: {
      a: { allOf: [text] },
      b: {
        allOf: [
          { type: 'object', properties: { x: text } },
          { properties: { y: text }, required: ['y'] },
        ],
      },
    },
  },
  maps: {
    type: 'object',
    properties: { a: { type: 'object', additionalProperties: { type: 'number' } } },
    additionalProperties: false,
  },
  'formats and bounds': {
    type: 'object',
    properties: {
      a: { type: 'string', format: 'uri', pattern: '^h', maxLength: 9, default: 'h', examples: ['h'] },
      b: { type: 'integer', minimum: 1, exclusiveMaximum: 9 },
    },
  },
};
