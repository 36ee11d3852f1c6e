import * as z from 'zod';
import { invalid } from './said.ts';

/** In which form the client wants the answer. Null: as words. `tool`: as the arguments of this tool of the client's. */
export interface ReplyFormat {
  schema: Record<string, unknown>;
  tool?: string | undefined;
}

const Schema = z.record(z.string(), z.unknown());
export const FunctionGiven = z.looseObject({ name: z.string().min(1).max(64), parameters: Schema.nullish() });
/** The chat API nests the function, the Responses API does not. */
const Tool = z.looseObject({ type: z.string().nullish(), function: FunctionGiven.nullish() });
const Named = z.looseObject({
  type: z.string().nullish(),
  name: z.string().nullish(),
  function: z.looseObject({ name: z.string() }).nullish(),
});
type Named = z.infer<typeof Named>;
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
};
type ToolGiven = z.infer<z.ZodObject<typeof ToolFields>>;

const JsonSchema = z.looseObject({ schema: Schema.nullish() });
/** `response_format`, and `text.format`, where the schema is not nested. */
export const Format = z.looseObject({
  type: z.string(),
  json_schema: JsonSchema.nullish(),
  schema: Schema.nullish(),
});
type Format = z.infer<typeof Format>;

const ANY_OBJECT = { type: 'object' };

/** Throws `event_invalid` for what an agent cannot do for a client. `path`: of the format. */
export function replyFormat(
  { tools, choice }: { tools: ToolGiven['tools']; choice: ToolGiven['tool_choice'] },
  format: Format | null | undefined,
  path: string,
): ReplyFormat | null {
  const shape = shapeOf(format, path);
  // A call has no words, and so none that need a form.
  return forcedTool(tools ?? [], choice ?? 'auto') ?? shape;
}

function shapeOf(format: Format | null | undefined, path: string): ReplyFormat | null {
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

function forcedTool(tools: readonly z.infer<typeof Tool>[], choice: string | Choice): ReplyFormat | null {
  if (choice === 'none') return null;
  const names = wantedBy(choice);
  const wanted = tools.filter((tool) => names === 'any' || names?.includes(nameOf(tool) ?? ''));
  const [only, ...others] = wanted;
  if (only && others.length === 0) return { tool: nameOf(only) ?? '', schema: schemaOf(only) };
  if (names !== null && names !== 'any' && names.length === 1 && !only)
    throw invalid('tool_choice', `no tool with the name "${names[0]}" is given`);
  if (tools.length === 0) return null;
  throw invalid('tools', OFFERED);
}

const OFFERED =
  'agents call the tools of their definition, and none of the client: add the tools there (tools, or a server of MCP), force one of yours with tool_choice, whose arguments are then the answer, or leave them out (tool_choice: "none")';

/** The tools one of which must be called. Null: none must be. */
function wantedBy(choice: string | Choice): string[] | 'any' | null {
  if (typeof choice === 'string') return choice === 'required' || choice === 'any' ? 'any' : null;
  const allowed =
    choice.allowed_tools ?? (choice.mode && choice.tools ? { ...choice, tools: choice.tools } : null);
  if (allowed) return allowed.mode === 'required' ? allowed.tools.map((each) => named(each) ?? '') : null;
  const name = named(choice);
  return name === null ? null : [name];
}

function named({ name, function: callee }: Named): string | null {
  return callee?.name ?? name ?? null;
}

function nameOf(tool: z.infer<typeof Tool>): string | null {
  return functionOf(tool)?.name ?? null;
}

function schemaOf(tool: z.infer<typeof Tool>): Record<string, unknown> {
  return functionOf(tool)?.parameters ?? ANY_OBJECT;
}

function functionOf(tool: z.infer<typeof Tool>): z.infer<typeof FunctionGiven> | null {
  if (tool.function) return tool.function;
  return tool.type === 'function' || tool.type == null ? (FunctionGiven.safeParse(tool).data ?? null) : null;
}
