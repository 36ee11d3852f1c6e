import * as z from 'zod';

/** A schema of a library that follows Standard Schema (https://standardschema.dev): zod, valibot, arktype and others. */
export interface StandardSchema<Output = unknown> {
  /** The library's part of the Standard Schema interface. */
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly output: Output } | undefined;
  };
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

interface StandardIssue {
  /** What is wrong. */
  readonly message: string;
  /** Path of the value. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A JSON schema (draft 2020-12) as plain data. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A schema of data: either from a library that follows Standard Schema, or a JSON schema. */
export type DataSchema = StandardSchema | JsonSchema;

/** Type of the values that a schema admits. The compiler does not know those of a JSON schema. */
export type DataOf<S> = S extends StandardSchema<infer Output> ? Output : Record<string, unknown>;

/** A schema in both forms that are needed: for models, and as a check of their output. */
export interface ReadySchema {
  json: Record<string, unknown>;
  check: (value: unknown) => Promise<Checked>;
}

/** `problems`: what is wrong, each with its path. */
export type Checked = { value: unknown } | { problems: string[] };

/**
 * Prepares a schema. `side`: the side of the schema that models are shown: `input`, before its transforms, for arguments;
 * `output` for replies. Throws an error that describes the problem of the schema. `json` is shown to models instead of the
 * derived JSON schema.
 */
export function readySchema(schema: DataSchema, side: 'input' | 'output', json?: JsonSchema): ReadySchema {
  if (isStandard(schema)) {
    return { json: withoutName(json ?? jsonOf(schema, side)), check: (value) => validate(schema, value) };
  }
  const problem = shapeProblem(schema);
  if (problem !== null) throw new TypeError(problem);
  const parser = parserOf(schema, side);
  return { json: withoutName(json ?? schema), check: (value) => validate(parser, value) };
}

/** The schemas of some libraries are functions. */
export function isStandard(schema: unknown): schema is StandardSchema {
  return '~standard' in Object(schema);
}

function shapeProblem(schema: unknown): string | null {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema))
    return 'give a schema of zod, valibot, arktype or another library of Standard Schema, or a JSON schema';
  if ('_def' in schema && 'parse' in schema)
    return 'zod before 3.24 does not follow Standard Schema: update zod, best to 4';
  const bare = Object.entries(schema).find(([, value]) => isStandard(value));
  if (bare) return `its field "${bare[0]}" is a schema and the whole is not: write z.object({ … }) around it`;
  return null;
}

function parserOf(schema: JsonSchema, side: 'input' | 'output'): StandardSchema {
  try {
    // Uses a registry of its own, because the global one refuses a second schema with the same id.
    return z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0], { registry: z.registry() });
  } catch (thrown) {
    const shown = side === 'input' ? '; "parameters" of a tool can still show it to models' : '';
    throw new TypeError(
      `as a JSON schema it cannot be checked: ${messageOf(thrown)}: leave that out${shown}`,
      {
        cause: thrown,
      },
    );
  }
}

function jsonOf(schema: StandardSchema, side: 'input' | 'output'): JsonSchema {
  // Checked by shape, because an application may use its own copy of zod.
  if ('_zod' in schema) {
    const own = schema as unknown as z.ZodType;
    // A model cannot be shown what a transform makes of a reply, so a transform in a reply's schema throws.
    return side === 'input'
      ? z.toJSONSchema(own, { io: 'input', unrepresentable: 'any' })
      : z.toJSONSchema(own);
  }
  const { vendor, jsonSchema } = schema['~standard'] as StandardSchema['~standard'] & {
    jsonSchema?: Record<typeof side, (options: { target: string }) => JsonSchema>;
  };
  if (!jsonSchema) throw new TypeError(`${vendor} gives no JSON schema for models: ${MENDS[vendor] ?? MEND}`);
  try {
    return jsonSchema[side]({ target: 'draft-2020-12' });
  } catch (thrown) {
    throw new TypeError(`${vendor} cannot express it as a JSON schema: ${messageOf(thrown)}`, {
      cause: thrown,
    });
  }
}

const MEND = 'use a schema that implements Standard JSON Schema';
const MENDS: Readonly<Record<string, string>> = {
  zod: 'use zod 4',
  valibot: 'wrap it in toStandardJsonSchema of @valibot/to-json-schema',
};

async function validate(schema: StandardSchema, value: unknown): Promise<Checked> {
  const result = await schema['~standard'].validate(value);
  return result.issues ? { problems: result.issues.map(problemOf) } : { value: result.value };
}

function problemOf({ path = [], message }: StandardIssue): string {
  const place = path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
  // ArkType begins its message with the path.
  return place === '' || message.startsWith(`${place} must `) ? message : `${place}: ${message}`;
}

const MOST_SHOWN = 10;

/** The first problems, and the number of further ones: a value may be wrong everywhere. */
export function firstProblems(problems: readonly string[], most = MOST_SHOWN): string[] {
  const more = problems.length - most;
  return [...problems.slice(0, most), ...(more > 0 ? [`and ${more} more`] : [])];
}

function withoutName(named: JsonSchema): Record<string, unknown> {
  const { $schema: _, ...schema } = named;
  return schema;
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
