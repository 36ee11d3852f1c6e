import * as z from 'zod';
import { type AskedReply, JsonData } from '../troupe.ts';
import { invalid } from './said.ts';

const Schema = z.record(z.string(), JsonData);
type Schema = z.infer<typeof Schema>;
export const FunctionGiven = z.looseObject({
  name: z.string().min(1).max(64),
  description: z.string().nullish(),
  parameters: Schema.nullish(),
});
type FunctionGiven = z.infer<typeof FunctionGiven>;
/** The chat API nests the function, the Responses API does not. */
const Tool = z.looseObject({ type: z.string().nullish(), function: FunctionGiven.nullish() });
type Tool = z.infer<typeof Tool>;
const Named = z.looseObject({
  type: z.string().nullish(),
  name: z.string().nullish(),
  function: z.looseObject({ name: z.string() }).nullish(),
});
const Allowed = z.looseObject({ mode: z.string(), tools: z.array(Named).max(128) });
const Choice = Named.extend({
  mode: z.string().nullish(),
  tools: Allowed.shape.tools.nullish(),
  allowed_tools: Allowed.nullish(),
});
type Choice = z.infer<typeof Choice>;

/** Fields of both APIs about tools of the client. */
export const ToolFields = {
  tools: z.array(Tool).max(128).nullish(),
  tool_choice: z.union([z.string(), Choice]).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
};

interface ToolsGiven {
  tools: readonly Tool[];
  choice: string | Choice;
  /** At most one call in an answer. */
  isSingle: boolean;
}

const JsonSchema = z.looseObject({ schema: Schema.nullish() });
/** `response_format`, and `text.format`, where the schema is not nested. */
export const Format = z.looseObject({
  type: z.string(),
  json_schema: JsonSchema.nullish(),
  schema: Schema.nullish(),
});
type Format = z.infer<typeof Format>;

const ANY_OBJECT = { type: 'object' };

/** The form of the answer. Null: words. Throws `event_invalid` for what an agent cannot do for a client. `path`: of the format. */
export function replyFormat(
  given: ToolsGiven,
  format: Format | null | undefined,
  path: string,
): AskedReply | null {
  const shape = shapeOf(format, path);
  const calls = callsOf(given);
  if (shape && calls?.calls !== undefined)
    throw invalid(path, 'with tools that may be called the answer has another form: leave one of both out');
  // A forced call has no words, and so none that need a form.
  return calls ?? shape;
}

function shapeOf(format: Format | null | undefined, path: string): AskedReply | null {
  if (!format) return null;
  switch (format.type) {
    case 'text':
      return null;
    case 'json_object':
      return { schema: ANY_OBJECT };
    case 'json_schema':
      return { schema: format.json_schema?.schema ?? format.schema ?? ANY_OBJECT };
    default:
      throw invalid(path, `"${format.type}" is not taken: text, json_object and json_schema are`);
  }
}

/** Calls of tools of the client are part of the answer: the agent answers in their form, and the client carries them out. */
function callsOf({ tools, choice, isSingle }: ToolsGiven): AskedReply | null {
  if (choice === 'none') return null;
  const { isForced, names } = wantedBy(choice);
  const offered = tools.filter((tool) => names === null || names.includes(functionOf(tool)?.name ?? ''));
  const missing = names?.find((name) => !offered.some((tool) => functionOf(tool)?.name === name));
  if (missing !== undefined) throw invalid('tool_choice', `no tool with the name "${missing}" is given`);
  const functions = offered.map((tool) => functionOf(tool) ?? refuse(tool));
  const [only, ...others] = functions;
  if (!only) return null;
  if (isForced && others.length === 0) return { tool: only.name, schema: only.parameters ?? ANY_OBJECT };
  return { calls: isForced ? 'required' : 'optional', schema: formOf(functions, { isForced, isSingle }) };
}

function refuse({ type }: Tool): never {
  throw invalid(
    'tools',
    `tools of the type "${type}" are not taken, functions are: an agent has the tools of its definition, and servers of MCP there`,
  );
}

/** `names`: the tools that may be called. Null: all. */
function wantedBy(choice: string | Choice): { isForced: boolean; names: string[] | null } {
  if (typeof choice === 'string') return { isForced: choice === 'required' || choice === 'any', names: null };
  const allowed =
    choice.allowed_tools ?? (choice.mode && choice.tools ? { mode: choice.mode, tools: choice.tools } : null);
  if (!allowed) {
    const name = named(choice);
    return name === null ? { isForced: false, names: null } : { isForced: true, names: [name] };
  }
  return { isForced: allowed.mode === 'required', names: allowed.tools.flatMap((each) => named(each) ?? []) };
}

function named({ name, function: callee }: z.infer<typeof Named>): string | null {
  return callee?.name ?? name ?? null;
}

function functionOf(tool: Tool): FunctionGiven | null {
  if (tool.function) return tool.function;
  return tool.type === 'function' || tool.type == null ? (FunctionGiven.safeParse(tool).data ?? null) : null;
}

const SAY = 'What you say to the user. Empty if you only call tools.';
const CALLS =
  "Calls of tools that the user's program carries out after this answer; their results come with its next message. Empty: none.";

/** An object, because vendors take no alternatives at the top. */
function formOf(
  functions: readonly FunctionGiven[],
  { isForced, isSingle }: { isForced: boolean; isSingle: boolean },
): Schema {
  const definitions: Schema = {};
  const items = functions.map(({ name, description, parameters }, index) => ({
    type: 'object',
    ...(description && { description }),
    properties: {
      name: { type: 'string', enum: [name] },
      arguments: hoisted(parameters ?? ANY_OBJECT, `t${index}_`, definitions),
    },
    required: ['name', 'arguments'],
    additionalProperties: false,
  }));
  const calls = {
    type: 'array',
    description: CALLS,
    items: items.length === 1 ? items[0] : { anyOf: items },
    ...(isForced && { minItems: 1 }),
    ...(isSingle && { maxItems: 1 }),
  };
  return {
    type: 'object',
    properties: { say: { type: 'string', description: SAY }, calls },
    required: ['say', 'calls'],
    additionalProperties: false,
    ...(Object.keys(definitions).length > 0 && { $defs: definitions }),
  };
}

/** A schema within another: its definitions are those of the whole, under names of their own. */
function hoisted(
  { $schema: _draft, $defs, definitions, ...own }: Schema,
  prefix: string,
  into: Schema,
): unknown {
  const defined = { ...Object(definitions), ...Object($defs) } as Schema;
  for (const [name, schema] of Object.entries(defined)) into[`${prefix}${name}`] = renamed(schema, prefix);
  const schema = renamed(own, prefix);
  if (JSON.stringify(schema).includes(`"#/$defs/${prefix}"`)) into[prefix] = schema;
  return schema;
}

function renamed(value: unknown, prefix: string): unknown {
  if (Array.isArray(value)) return value.map((each) => renamed(each, prefix));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [
      key,
      key === '$ref' && typeof part === 'string'
        ? part.replace(/^#(?:\/(?:\$defs|definitions)\/)?/, `#/$defs/${prefix}`)
        : renamed(part, prefix),
    ]),
  );
}
