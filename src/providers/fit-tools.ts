import type { ToolCall, ToolSpec } from '../events/index.ts';
import { parseArgs } from './call-text.ts';
import type { ModelEvent, ModelRequest } from './provider.ts';
import { isSchema, mapSchema, type Schema, type ToolRules } from './tool-schema.ts';

/** A tool as a vendor gets it. */
interface Fitted {
  /** Null: the tool cannot be offered. */
  spec: ToolSpec | null;
  /** Property names for the vendor, and back. Null: none was renamed. */
  names: Names | null;
}

interface Names {
  there: ReadonlyMap<string, string>;
  back: ReadonlyMap<string, string>;
}

/** Cached, because tools never change and are sent again with each request. */
const fitted = new WeakMap<ToolRules, WeakMap<ToolSpec, Fitted>>();

function fit(tool: ToolSpec, rules: ToolRules): Fitted {
  const known = fitted.get(rules) ?? new WeakMap<ToolSpec, Fitted>();
  fitted.set(rules, known);
  const made = known.get(tool) ?? make(tool, rules);
  known.set(tool, made);
  return made;
}

function make(tool: ToolSpec, { shape, keys }: ToolRules): Fitted {
  const names = keys ? namesIn(tool.parameters, keys) : null;
  const parameters = shape(names ? renamed(tool.parameters, names.there) : tool.parameters);
  return { spec: parameters && { ...tool, parameters }, names };
}

/** Why a tool cannot be offered to the models of a vendor; null if it can. */
export function toolProblem(tool: ToolSpec, rules: ToolRules): string | null {
  return fit(tool, rules).spec === null
    ? 'no object fits its schema, and calls have objects as arguments'
    : null;
}

/** The request with tools in the vendor's form, and `restore`, which gives the events of its answer the original property names. */
export function withFittedTools(
  request: ModelRequest,
  rules: ToolRules | undefined,
): { request: ModelRequest; restore: (events: AsyncIterable<ModelEvent>) => AsyncIterable<ModelEvent> } {
  if (!rules || request.tools.length === 0) return { request, restore: (events) => events };
  const all = request.tools.map((tool) => [tool.name, fit(tool, rules)] as const);
  const tools = all.flatMap(([, { spec }]) => (spec ? [spec] : []));
  const named = all.flatMap(([name, { names }]) => (names ? [[name, names] as const] : []));
  if (named.length === 0) return { request: { ...request, tools }, restore: (events) => events };
  const names = new Map(named);
  const messages = request.messages.map((message) => {
    if (message.role !== 'assistant' || !message.calls?.some(({ name }) => names.has(name))) return message;
    const calls = message.calls.map((call) => ({
      ...call,
      args: withKeys(call.args, names.get(call.name)?.there),
    }));
    return { ...message, calls };
  });
  return { request: { ...request, tools, messages }, restore: (events) => withOwnKeys(events, names) };
}

/** The pieces of a call with renamed properties are given in one, because part of a name cannot be translated back. */
async function* withOwnKeys(
  events: AsyncIterable<ModelEvent>,
  names: ReadonlyMap<string, Names>,
): AsyncGenerator<ModelEvent> {
  const begun = new Set<string>();
  for await (const event of events) {
    const called: Pick<ToolCall, 'name'> | null =
      event.type === 'calling' ? event : event.type === 'call' ? event.call : null;
    const back = called && names.get(called.name)?.back;
    if (!back) yield event;
    else if (event.type === 'calling') {
      if (!begun.has(event.id)) yield { ...event, delta: '' };
      begun.add(event.id);
    } else if (event.type === 'call') {
      const { id, name } = event.call;
      const args = withKeys(event.call.args, back);
      if (begun.has(id)) yield { type: 'calling', id, name, delta: args };
      yield { ...event, call: { ...event.call, args } };
    }
  }
}

const TEXT = /"(?:[^"\\]|\\.)*"(\s*:)?/g;

/** The arguments with renamed properties. The rest of the text stays the same, down to the digits of numbers. */
function withKeys(args: string, names: ReadonlyMap<string, string> | undefined): string {
  if (!names || parseArgs(args) === null) return args;
  return args.replace(TEXT, (text: string, colon?: string) => {
    if (colon === undefined) return text;
    const name = names.get(JSON.parse(text.slice(0, -colon.length)) as string);
    return name === undefined ? text : JSON.stringify(name) + colon;
  });
}

const LONGEST = 64;

/** A new name for each property whose own name the vendor refuses. Null if it accepts all. */
function namesIn(schema: Schema, keys: RegExp): Names | null {
  const all = new Set<string>();
  mapSchema(schema, (part) => {
    for (const name of Object.keys(isSchema(part['properties']) ? part['properties'] : {})) all.add(name);
    return part;
  });
  const odd = [...all].filter((name) => !keys.test(name));
  if (odd.length === 0) return null;
  const taken = new Set(all);
  const there = new Map<string, string>();
  for (const name of odd) {
    const plain = name.replaceAll(/[^a-zA-Z0-9_.-]/g, '_').slice(0, LONGEST);
    const base = keys.test(plain) ? plain : `p_${plain}`.slice(0, LONGEST);
    let made = base;
    for (let number = 2; taken.has(made); number += 1) made = `${base.slice(0, LONGEST - 6)}_${number}`;
    taken.add(made);
    there.set(name, made);
  }
  return { there, back: new Map([...there].map(([name, made]) => [made, name])) };
}

function renamed(schema: Schema, names: ReadonlyMap<string, string>): Schema {
  const nameOf = (name: unknown) => (typeof name === 'string' ? (names.get(name) ?? name) : name);
  return mapSchema(schema, (part) => {
    const { properties, required, dependentRequired } = part;
    return {
      ...part,
      ...(isSchema(properties) && {
        properties: Object.fromEntries(
          Object.entries(properties).map(([name, value]) => [nameOf(name), describedAs(name, value, names)]),
        ),
      }),
      ...(Array.isArray(required) && { required: required.map(nameOf) }),
      ...(isSchema(dependentRequired) && {
        dependentRequired: Object.fromEntries(
          Object.entries(dependentRequired).map(([name, others]) => [
            nameOf(name),
            Array.isArray(others) ? others.map(nameOf) : others,
          ]),
        ),
      }),
    };
  });
}

const SHOWN_NAME = 200;

/** The description names the original property, whose name tells the model what it means. */
function describedAs(name: string, schema: unknown, names: ReadonlyMap<string, string>): unknown {
  if (!names.has(name) || !isSchema(schema)) return schema;
  const { description } = schema;
  const words = `(named ${JSON.stringify(name.slice(0, SHOWN_NAME))})`;
  return { ...schema, description: typeof description === 'string' ? `${description} ${words}` : words };
}
