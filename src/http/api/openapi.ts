import * as z from 'zod';
import { Event } from '../../events/index.ts';
import { Prompt } from '../answers.ts';
import type { Door } from '../../library/integrations/door.ts';
import type { ErrorStatus, Route } from '../route.ts';
import { PATH_PARAMETERS, type PathParameter } from '../schemas.ts';

/**
 * Writes the OpenAPI 3.1 document from the routes' declarations. The OpenAPI libraries for Hono and zod (`hono-openapi`,
 * `@hono/zod-openapi`, `zod-openapi`) bring their own validation, or only turn schemas into JSON Schema, which zod does
 * itself. None derives errors, links and scopes from a route, which is most of this file.
 */
export interface DocumentOptions {
  /** Whether callers without a credential are admitted. */
  keyless?: boolean;
  /** Path at which clients see the app. */
  base?: string;
  /** Open doors. */
  doors?: readonly Door[];
}

const documents = new WeakMap<readonly Route[], Map<boolean, object>>();

export function writeDocument(
  routes: readonly Route[],
  { keyless = false, base = '' }: Omit<DocumentOptions, 'doors'> = {},
): object {
  const known = documents.get(routes) ?? new Map<boolean, object>();
  documents.set(routes, known);
  const document = known.get(keyless) ?? describeApi(routes, keyless);
  known.set(keyless, document);
  return { ...document, servers: [{ url: base || '/' }] };
}

const JSON_TYPE = 'application/json';
const STREAM_TYPE = 'text/event-stream';
const ERROR_CONTENT = { [JSON_TYPE]: { schema: { $ref: '#/components/schemas/Error' } } };
const RETRY_AFTER = { 'retry-after': { schema: { type: 'string', pattern: '^[1-9][0-9]*$' } } };

const CHALLENGE = { 'www-authenticate': { schema: { type: 'string' } } };

const ERROR = {
  type: 'object',
  properties: {
    error: {
      type: 'object',
      properties: { code: { type: 'string' }, message: { type: 'string' }, data: { type: 'object' } },
      required: ['code', 'message', 'data'],
    },
  },
  required: ['error'],
};

const ERROR_MEANINGS: Record<ErrorStatus, string> = {
  400: 'The input is invalid; `data.problems` has each problem with its path',
  401: 'The credential is missing or unknown',
  403: 'The caller may not do this, or the page or host name of the request is not trusted',
  404: 'The id does not exist, or the caller has no access to it',
  409: 'The request conflicts with the current state, or the id has another payload',
  413: 'The body is too large',
  415: 'The content type of the body is not accepted',
  429: 'Too many requests by one caller, author or tenant; `retry-after` says when to try again',
  500: 'An internal error; the server has reported it to its operator',
  502: 'An address that the request names cannot be reached',
  503: 'A service cannot be reached, or the process is ending; try again',
};

/** Errors that tell when to try again. */
const MAY_PASS: ReadonlySet<string> = new Set(['429', '503']);

function headersOf(status: string): { headers?: object } {
  if (status === '401') return { headers: CHALLENGE };
  return MAY_PASS.has(status) ? { headers: RETRY_AFTER } : {};
}

function describeApi(routes: readonly Route[], keyless: boolean): object {
  const described = routes.filter(({ id }) => id !== null);
  const paths: Record<string, Record<string, object>> = {};
  for (const route of described) {
    const operation = describeRoute(route, described, keyless);
    (paths[route.path] ??= {})[route.method.toLowerCase()] = operation;
  }
  const responses = Object.entries(ERROR_MEANINGS).map(([status, description]) => [
    `Error${status}`,
    { description, content: ERROR_CONTENT, ...headersOf(status) },
  ]);
  return {
    openapi: '3.1.0',
    info: { title: 'Troupe', version: '1' },
    paths,
    components: {
      schemas: { ...eventSchemas(), Prompt: schemaOf(Prompt), Error: ERROR },
      responses: Object.fromEntries(responses) as object,
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            "A key, a user's token, or the token of the server; a server on loopback may require none",
        },
      },
    },
  };
}

/** `all`: routes to which the answers may link. */
function describeRoute(route: Route, all: readonly Route[], keyless: boolean): object {
  const { id, summary, query, body, bodyType, example } = route;
  const params = paramsOf(route);
  const schema = body ? schemaOf(body) : FILE;
  const shown = { schema, ...(example !== undefined && { example }) };
  const content = (bodyType ?? body) && { [bodyType ?? JSON_TYPE]: shown };
  return {
    operationId: id,
    summary,
    ...securityOf(route, keyless),
    parameters: [...params.map(pathParameter), ...queryParameters(query)],
    ...(content !== undefined && { requestBody: { required: true, content } }),
    responses: {
      ...errorsOf(route, params.length > 0),
      ...answersOf(route, linksOf(route, params, all)),
      default: { description: 'An error', content: ERROR_CONTENT },
    },
  };
}

/** Errors that follow from the input of a route, and errors that it declares. */
function errorsOf(route: Route, hasParams: boolean): Record<string, object> {
  if (route.scopes === 'public') return {};
  const statuses: ErrorStatus[] = [401, 403, 429, 500, 503, ...(route.errors ?? [])];
  const hasBody = route.body !== undefined || route.bodyType !== undefined;
  if (route.query || hasBody || hasParams) statuses.push(400);
  if (hasParams || route.query?.shape['conversation']) statuses.push(404);
  if (hasBody) statuses.push(404, 413, 415);
  if (route.method !== 'GET') statuses.push(409);
  const refs = statuses.map((status) => [status, { $ref: `#/components/responses/Error${status}` }]);
  return Object.fromEntries(refs) as Record<string, object>;
}

function answersOf(route: Route, links: object): Record<string, object> {
  const { status = 200, answer, answerType = JSON_TYPE, also = {}, headers: named } = route;
  const headers = named && {
    headers: Object.fromEntries(named.map((name) => [name, { schema: { type: 'string' } }])),
  };
  const answers: Record<string, object> = {};
  for (const [other, { type, schema }] of Object.entries(also)) {
    const content = type || schema ? contentOf(type, schema) : undefined;
    const meanings: Readonly<Record<string, string>> = ERROR_MEANINGS;
    const description = Number(other) < 400 ? 'Success' : (meanings[other] ?? 'An error');
    answers[other] = { description, ...(content && { content }), ...headers, ...links };
  }
  const other = also[status];
  const content = {
    ...contentOf(answerType, answer),
    ...(other && contentOf(other.type, other.schema)),
  };
  return { ...answers, [status]: { description: 'Success', content, ...headers, ...links } };
}

function contentOf(type: string = JSON_TYPE, schema?: z.ZodType): Record<string, object> {
  // No schema: some readers of the document would apply it to the body, others to one event.
  if (type === STREAM_TYPE) return { [type]: {} };
  const plain = { type: type === JSON_TYPE ? 'object' : 'string' };
  return { [type]: { schema: schema ? schemaOf(schema) : plain } };
}

/**
 * Links to each operation whose path parameters are all in this route's path or answer. An operation that accepts another
 * tenant needs it, because an id exists within its tenant only.
 */
function linksOf({ gives, query }: Route, own: readonly PathParam[], all: readonly Route[]): object {
  if (!gives) return {};
  const links = all.flatMap((other) => {
    const { id, query: asked } = other;
    const params = paramsOf(other);
    const values = params.map((param) => valueOf(param, gives, own));
    if (!params.some(({ noun }) => pointerIn(gives, noun)) || values.includes(null)) return [];
    const named = params.map(({ name }, index) => [name, values[index]]);
    const tenant = gives.tenant
      ? `$response.body#${gives.tenant}`
      : query?.shape['tenant'] && '$request.query.tenant';
    if (tenant && asked?.shape['tenant']) named.push(['query.tenant', tenant]);
    return [[id, { operationId: id, parameters: Object.fromEntries(named) as object }]];
  });
  return { links: Object.fromEntries(links) as object };
}

function valueOf(
  { noun }: PathParam,
  gives: NonNullable<Route['gives']>,
  own: readonly PathParam[],
): string | null {
  const pointer = pointerIn(gives, noun);
  if (pointer) return `$response.body#${pointer}`;
  const same = own.find((param) => param.noun === noun);
  return same ? `$request.path.${same.name}` : null;
}

function securityOf({ scopes }: Route, keyless: boolean): object {
  if (scopes === 'public') return { security: [] };
  return { security: [{ bearer: [] }, ...(keyless ? [{}] : [])], 'x-troupe-scopes': scopes };
}

function pointerIn(gives: NonNullable<Route['gives']>, noun: string): string | undefined {
  return (gives as Readonly<Record<string, string>>)[noun];
}

interface PathParam extends PathParameter {
  name: string;
  /** The path segment before the parameter. */
  noun: string;
}

function paramsOf({ path, params = {} }: Route): PathParam[] {
  const parts = path.split('/');
  const known: Readonly<Record<string, PathParameter | undefined>> = PATH_PARAMETERS;
  const own: Readonly<Record<string, PathParameter | undefined>> = params;
  return parts.flatMap((part, index) => {
    if (!part.startsWith('{')) return [];
    const noun = parts[index - 1] ?? '';
    const name = part.slice(1, part.indexOf('}'));
    const described = own[name] ?? known[noun];
    if (!described) throw new Error(`${path}: "params" has no schema for ${part}`);
    return [{ ...described, name, noun }];
  });
}

function pathParameter({ name, schema, example }: PathParam): object {
  return { name, in: 'path', required: true, schema: schemaOf(schema), example };
}

/** A parameter is required if its schema refuses `undefined`. */
function queryParameters(query: z.ZodObject | undefined): object[] {
  return Object.entries(query?.shape ?? {}).map(([name, each]) => {
    const schema = each as z.ZodType;
    return { name, in: 'query', required: !schema.safeParse(undefined).success, schema: schemaOf(schema) };
  });
}

/** A body that is not JSON. */
const FILE = { type: 'string', format: 'binary' };
const INT32_MAX = 2 ** 31 - 1;
const SCHEMAS = '#/components/schemas/';

/** One named schema for each kind of event, and `Event` as the union of them, so that generators have a name for each. */
function eventSchemas(): Record<string, object> {
  const { oneOf } = schemaOf(Event) as { oneOf: { properties: { kind: { const: string } } }[] };
  const named = oneOf.map((schema) => {
    const { const: kind } = schema.properties.kind;
    return { kind, schema, name: `${kind.split(/[._-]/).map(capital).join('')}Event` };
  });
  const mapping = Object.fromEntries(named.map(({ kind, name }) => [kind, `${SCHEMAS}${name}`]));
  const anyEvent = {
    oneOf: named.map(({ name }) => ({ $ref: `${SCHEMAS}${name}` })),
    discriminator: { propertyName: 'kind', mapping },
  };
  return { Event: anyEvent, ...Object.fromEntries(named.map(({ name, schema }) => [name, schema])) };
}

function capital(word: string): string {
  return `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
}

/** JSON Schema of what clients write, before defaults and transforms. */
function schemaOf(schema: z.ZodType): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => writePlainly(jsonSchema),
  });
  return rest;
}

/** Client generators do not understand tuples with `items: false`, and know null only as the second of two alternatives. */
function writePlainly(schema: z.core.JSONSchema.BaseSchema): void {
  const { prefixItems, anyOf, properties = {} } = schema;
  const others = anyOf?.filter(({ type }) => type !== 'null');
  if (anyOf && others && others.length > 1 && others.length < anyOf.length)
    schema.anyOf = [{ anyOf: others }, { type: 'null' }];
  for (const each of Object.values(properties))
    if (typeof each === 'object' && each.type === 'null') delete each.type;
  // Without this format, generated clients would use 32-bit integers, in which times in ms overflow.
  if (schema.type === 'integer' && (schema.maximum ?? Infinity) > INT32_MAX) schema.format = 'int64';
  if (!Array.isArray(prefixItems)) return;
  const places = prefixItems as z.core.JSONSchema.JSONSchema[];
  const [first, ...more] = new Map(places.map((each) => [JSON.stringify(each), each])).values();
  schema.items = more.length === 0 ? first! : { anyOf: [first!, ...more] };
  schema.minItems = schema.maxItems = prefixItems.length;
  delete schema.prefixItems;
}
