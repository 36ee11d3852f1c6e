import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as v from 'valibot';
import { expect, expectTypeOf, test } from 'vitest';
import * as z from 'zod';
import { z as z3 } from 'zod3';
import { createFakeClock } from '../../packages/testing/src/fake-clock.ts';
import { runTool } from '../../src/tools/run-tool.ts';
import { defineTool, type Tool, type ToolContext, toolSpec } from '../../src/tools/tool.ts';

const clock = createFakeClock();
const about = { name: 'add', description: 'Adds.' };
const parameters = {
  type: 'object',
  properties: { a: { type: 'number' }, b: { type: 'number' } },
  required: ['a'],
};

const TOOLS: [string, Tool][] = [
  [
    'zod 4',
    defineTool({
      ...about,
      schema: z.object({ a: z.number(), b: z.number().default(1) }),
      run: ({ a, b }) => String(a + b),
    }),
  ],
  [
    'zod 3',
    defineTool({
      ...about,
      parameters,
      schema: z3.object({ a: z3.number(), b: z3.number().default(1) }),
      run: ({ a, b }) => String(a + b),
    }),
  ],
  [
    'valibot',
    defineTool({
      ...about,
      schema: toStandardJsonSchema(v.object({ a: v.number(), b: v.optional(v.number(), 1) })),
      run: ({ a, b }) => String(a + b),
    }),
  ],
  [
    'arktype',
    defineTool({
      ...about,
      schema: type({ a: 'number', b: 'number = 1' }),
      run: ({ a, b }) => String(a + b),
    }),
  ],
  [
    'a JSON schema',
    defineTool({
      ...about,
      schema: {
        type: 'object',
        properties: { a: { type: 'number' }, b: { type: 'number', default: 1 } },
        required: ['a'],
      },
      run: ({ a, b }) => String((a as number) + (b as number)),
    }),
  ],
];

const call = (tool: Tool, args: string) =>
  runTool(tool, { id: 'c1', name: tool.name, args }, CONTEXT, { clock });
const CONTEXT = { signal: new AbortController().signal } as ToolContext;

test.each(TOOLS)(
  'with %s models see a JSON schema, and arguments are checked and completed',
  async (_, tool) => {
    expect(toolSpec(tool).parameters).toMatchObject({
      type: 'object',
      properties: { a: { type: 'number' }, b: { type: 'number' } },
      required: ['a'],
    });
    expect(toolSpec(tool).parameters).not.toHaveProperty('$schema');
    expect(await call(tool, '{"a":2}')).toEqual({ outcome: 'done', text: '3' });
    const wrong = await call(tool, '{"a":"2"}');
    expect(wrong).toMatchObject({ outcome: 'failed' });
    expect(wrong.text).toMatch(/^the arguments of add do not fit its schema:\na\b.*number/);
  },
);

test('types of the arguments follow from the schema', () => {
  defineTool({
    ...about,
    schema: z.object({ a: z.string().transform(Number) }),
    run(args) {
      expectTypeOf(args).toEqualTypeOf<{ a: number }>();
      return '';
    },
  });
  defineTool({
    ...about,
    parameters,
    schema: z3.object({ a: z3.number() }),
    run(args) {
      expectTypeOf(args).toEqualTypeOf<{ a: number }>();
      return '';
    },
  });
  defineTool({
    ...about,
    schema: type({ a: 'number' }),
    needsApproval: ({ a }) => a > 1,
    run(args) {
      expectTypeOf(args).toEqualTypeOf<{ a: number }>();
      return '';
    },
  });
  defineTool({
    ...about,
    schema: { type: 'object' },
    run(args) {
      expectTypeOf(args).toEqualTypeOf<Record<string, unknown>>();
      return '';
    },
  });
});

test('every problem has its place, even if its words begin with the letter of it', async () => {
  const schema = z.object({ a: z.string().refine(() => false, 'at least one word is needed') });
  const { text } = await call(defineTool({ ...about, schema, run: () => '' }), '{"a":""}');
  expect(text).toMatch(/\na: at least one word is needed$/);
});

test('a check may be asynchronous, and is under the timeout of the tool', async () => {
  const known = z.object({ id: z.string().refine((id) => Promise.resolve(id === 'a'), 'nobody knows it') });
  const tool = defineTool({ ...about, schema: known, run: ({ id }) => id });
  expect(await call(tool, '{"id":"a"}')).toEqual({ outcome: 'done', text: 'a' });
  expect((await call(tool, '{"id":"b"}')).text).toContain('id: nobody knows it');

  const never = z.object({}).refine(() => new Promise<boolean>(() => undefined));
  const stuck = defineTool({ ...about, schema: never, timeoutMs: 1_000, run: () => 'ran' });
  const ending = call(stuck, '{}');
  await clock.advance(1_000);
  expect((await ending).text).toContain('took longer than 1000 ms');
});

test('a value that is wrong everywhere gives the first problems and their number', async () => {
  const schema = z.object(Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`f${n}`, z.string()])));
  const { text } = await call(defineTool({ ...about, schema, run: () => '' }), '{}');
  expect(text.split('\n')).toHaveLength(12);
  expect(text).toMatch(/\nand 20 more$/);
});
