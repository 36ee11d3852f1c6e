import * as z from 'zod';
import {
  type AttachmentByAddress,
  type NewAttachment,
  TroupeError,
  type AskedReply,
  JsonData,
  tryParse,
} from '../troupe.ts';

export type Attached = NewAttachment | AttachmentByAddress;

export interface Said {
  content: string;
  attachments: Attached[];
}

/** A tool call within an answer, as the client repeats it. */
export interface ToldCall {
  id: string | null;
  name: string;
  /** JSON in the client's form. */
  args: string;
}

/** A message or an item of a request, of either API. */
export type Told =
  | { role: 'system'; text: string }
  | { role: 'user'; text: string; attachments: Attached[] }
  | {
      role: 'assistant';
      text: string;
      calls: ToldCall[];
      /** The answer of this server that the item repeats or refers to. */
      answer?: { conversation: string; seq: number } | undefined;
      /** It has no text of its own, so the text is looked up. */
      isReference?: true | undefined;
    }
  | { role: 'tool'; call: string | null; name: string | null; text: string; attachments: Attached[] };

/** A request's history, and its new message. */
export interface Heard {
  /** Messages up to the last answer. Empty if there is none. */
  history: readonly Told[];
  /** The user's text since then, and the results that the client adds. */
  fresh: Said;
  /** Instructions of the request itself, for the first message of a conversation. */
  rules: string;
}

/** Throws `event_invalid` for `path` if there is no text since the last answer. */
export function heardIn(told: readonly Told[], rules: string, path: 'messages' | 'input'): Heard {
  const last = told.findLastIndex(({ role }) => role === 'assistant');
  const history = told.slice(0, last + 1);
  const news = told.slice(last + 1);
  const attachments = news.flatMap((each) => ('attachments' in each ? each.attachments : []));
  const content = joined(news.map((each) => wordsOf(each, history)));
  const isSaid = news.some(({ role }) => role === 'user' || role === 'tool');
  if (isSaid && (content !== '' || attachments.length > 0))
    return { history, fresh: { content, attachments }, rules };
  const one = path === 'messages' ? 'message' : 'item';
  throw invalid(path, `the last ${one} must be a message of the user, or the result of a call`);
}

function wordsOf(told: Told, history: readonly Told[]): string {
  if (told.role !== 'tool') return told.text;
  const name = told.name ?? callNamed(history, told.call)?.name;
  return `Result of ${name ?? 'a call'}: ${told.text}`;
}

function callNamed(history: readonly Told[], id: string | null): ToldCall | undefined {
  const last = history.at(-1);
  return last?.role === 'assistant' ? last.calls.find((call) => call.id === id) : undefined;
}

/** Most attachments of a history that are sent with the new message, and most characters of them as base64. The newest are kept. */
const MOST_EARLIER = { files: 8, chars: 16 * 1_024 * 1_024 };

/** The message that begins a conversation, and the messages before it as a transcript in OpenAI's format. */
interface Begun {
  transcript: object[];
  first: Said;
}

/** Files go with the first message, because a transcript cannot hold any. Where each file was, a line names it. */
export function begin({ history, fresh, rules }: Heard): Begun {
  const earlier: Attached[] = [];
  const transcript: object[] = [];
  let waiting = rules;
  for (const [index, told] of history.entries()) {
    const own = 'attachments' in told ? told.attachments : [];
    const text = joined([told.text, ...own.map((file) => `(file ${earlier.push(file)})`)]);
    if (told.role === 'system') waiting = joined([waiting, text]);
    else if (told.role === 'tool') transcript.push(resultOf(told, text));
    else {
      if (told.role === 'user') transcript.push({ role: 'user', content: joined([waiting, text]) });
      else {
        if (waiting !== '') transcript.push({ role: 'user', content: waiting });
        transcript.push(answered(told, index === history.length - 1));
      }
      waiting = '';
    }
  }
  const content = joined([waiting, fresh.content]);
  return { transcript, first: { content, attachments: [...newest(earlier), ...fresh.attachments] } };
}

function resultOf({ call, name }: Told & { role: 'tool' }, content: string): object {
  return { role: 'tool', tool_call_id: call, ...(name !== null && { name }), content };
}

/** The newest files, with the numbers by which the transcript names them. */
function newest(files: readonly Attached[]): Attached[] {
  const kept: Attached[] = [];
  let chars = 0;
  for (const [number, file] of [...files.entries()].toReversed()) {
    chars += 'data' in file ? file.data.length : 0;
    if (kept.length === MOST_EARLIER.files || chars > MOST_EARLIER.chars) break;
    const name = ['file', number + 1, ...(file.name === undefined ? [] : [file.name])].join(' ');
    kept.unshift({ ...file, name: name.slice(0, 255) });
  }
  return kept;
}

/** The results of the last answer's calls come only with the new message, so its calls are written as text. */
function answered({ text, calls }: Told & { role: 'assistant' }, isLast: boolean): object {
  if (!isLast || calls.length === 0)
    return {
      role: 'assistant',
      content: text,
      ...(calls.length > 0 && {
        tool_calls: calls.map(({ id, name, args }) => ({ id, function: { name, arguments: args } })),
      }),
    };
  const [only] = calls;
  const made = calls.length === 1 && only ? [only.args] : calls.map(({ name, args }) => `${name} ${args}`);
  return { role: 'assistant', content: joined([text, ...made]) };
}

interface Line {
  role: string;
  content: string;
  tool_calls?: { function: { name: string; arguments: string } }[];
}

/** The transcript as text of the user, for callers who may not write as agents. */
export function quoted({ transcript, first }: Begun): Said {
  const lines = (transcript as Line[]).map(({ role, content, tool_calls: calls = [] }) => {
    const made = calls.map(({ function: { name, arguments: args } }) => `(calls ${name} ${args})`);
    return `${WHO[role] ?? role}: ${joined([content, ...made])}`;
  });
  const content = joined(['Said before, as this client tells it:', ...lines, 'Now:', first.content]);
  return { ...first, content };
}

const WHO: Record<string, string> = { user: 'User', assistant: 'Assistant', tool: 'Result' };

function joined(texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join('\n\n');
}

/** A file at a URL. A data URL contains the file itself. */
export function fileAt(url: string, name?: string | null): Attached {
  const named = name ? { name } : {};
  const [, mediaType, data] = /^data:([a-z]+\/[\w.+-]+)(?:;[\w=.-]+)*;base64,([^]*)$/i.exec(url) ?? [];
  return mediaType !== undefined && data !== undefined ? { ...named, mediaType, data } : { ...named, url };
}

interface FileGiven {
  file_data?: string | null | undefined;
  file_id?: string | null | undefined;
  filename?: string | null | undefined;
}

/** The bytes of a file part. Clients send a data URL, or plain base64. Throws `event_invalid`. */
export function fileIn({ file_data: data, file_id: id, filename: name }: FileGiven, path: string): Attached {
  if (data) {
    if (data.startsWith('data:')) return fileAt(data, name);
    return { ...(name && { name }), mediaType: typeNamed(name ?? ''), data };
  }
  const why = id ? `there are no uploaded files, and so none with the id "${id}"` : 'a file has no bytes';
  throw invalid(path, `${why}: send it as file_data, a data URL in base64`);
}

const TYPES: Record<string, string> = {
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  json: 'application/json',
};

/** Without a media type, the API accepts only PDFs. */
function typeNamed(name: string): string {
  const ending = /\.(\w+)$/.exec(name)?.[1]?.toLowerCase();
  return ending === undefined ? 'application/pdf' : (TYPES[ending] ?? 'application/octet-stream');
}

export function invalid(path: string, message: string): TroupeError {
  return new TroupeError('event_invalid', `${path}: ${message}`, { path });
}

const Schema = z.record(z.string(), JsonData);
type Schema = z.infer<typeof Schema>;
export const FunctionGiven = z.looseObject({
  name: z.string().min(1).max(64),
  description: z.string().nullish(),
  parameters: Schema.nullish(),
});
type FunctionGiven = z.infer<typeof FunctionGiven>;
/** The chat API nests the function; the Responses API does not. */
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

/** Fields of both APIs about the client's tools. */
export const ToolFields = {
  tools: z.array(Tool).max(128).nullish(),
  tool_choice: z.union([z.string(), Choice]).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
};

interface ToolsGiven {
  tools: readonly Tool[];
  choice: string | Choice;
  /** The answer may have at most one call. */
  isSingle: boolean;
}

const JsonSchema = z.looseObject({ schema: Schema.nullish() });
/** `response_format`, and `text.format`, in which the schema is not nested. */
export const Format = z.looseObject({
  type: z.string(),
  json_schema: JsonSchema.nullish(),
  schema: Schema.nullish(),
});
type Format = z.infer<typeof Format>;

const ANY_OBJECT = { type: 'object' };

/** The form of the answer; null for plain text. Throws `event_invalid` for a form that no agent can produce. `path`: its path. */
export function replyFormat(
  given: ToolsGiven,
  format: Format | null | undefined,
  path: string,
): AskedReply | null {
  const shape = shapeOf(format, path);
  const calls = callsOf(given);
  if (shape && calls?.calls !== undefined)
    throw invalid(path, 'with tools that may be called the answer has another form: leave one of both out');
  // A forced call has no text, so no text needs a form.
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

/** Calls of the client's tools are part of the answer: the agent answers in a form for calls, and the client runs them. */
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
  return tool.type === 'function' || tool.type == null ? (tryParse(FunctionGiven, tool).data ?? null) : null;
}

const SAY = 'What you say to the user. Empty if you only call tools.';
const CALLS =
  "Calls of tools that the user's program carries out after this answer; their results come with its next message. Empty: none.";

/** An object, because vendors accept no alternatives at the top of a schema. */
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

/** Moves a schema into another: its definitions become those of the outer schema, under names of their own. */
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
