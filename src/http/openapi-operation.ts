import * as z from 'zod';
import { PUBLIC_ROUTES, ROUTE_SCOPES } from './access/route-scopes.ts';
import { errorResponsesOf, type ErrorStatus } from './openapi-errors.ts';
import { PATH_PARAMETERS } from './schemas.ts';

export const JSON_TYPE = 'application/json';

type PathNoun = keyof typeof PATH_PARAMETERS;

interface Answer {
  type?: string;
  schema?: object;
  of?: z.ZodType;
}

/** A route, as the API's description has it. */
export interface Operation {
  /** What generated clients call it. */
  id: string;
  summary: string;
  query?: z.ZodObject;
  body?: z.ZodType;
  /** Of a body that is a file. */
  bodyType?: string;
  /** The response that means success. */
  answer: Answer & { status: number };
  /** Other answers that are no errors in the common shape, or another type of the same status. */
  also?: Record<number, Answer>;
  /** Errors beside those that follow from what it takes. */
  errors?: readonly ErrorStatus[];
  /** Where in the answer ids stand that paths take: a JSON pointer for each noun. */
  gives?: Partial<Record<PathNoun, string>>;
}

export const WHOLE = { type: 'integer' };

export function listOf(name: string, items: object, more: object = {}): object {
  return { type: 'object', properties: { [name]: { type: 'array', items }, ...more } };
}

/** `all` is what its answers may link to. */
export function describeOperation(
  route: string,
  operation: Operation,
  all: Readonly<Record<string, Operation>>,
  keyless: boolean,
): object {
  const [method = '', path = ''] = route.split(' ');
  const { id, summary, query, body, bodyType } = operation;
  const isPublic = PUBLIC_ROUTES.has(route);
  const nouns = nounsOf(path);
  const errors = errorResponsesOf({
    method,
    isPublic,
    hasPathParameters: nouns.length > 0,
    hasQuery: query !== undefined,
    hasBody: body !== undefined || bodyType !== undefined,
    more: operation.errors ?? [],
  });
  return {
    operationId: id,
    summary,
    ...securityOf(route, isPublic, keyless),
    parameters: [...nouns.map(pathParameter), ...queryParameters(query)],
    ...(body && { requestBody: { required: true, content: { [JSON_TYPE]: { schema: schemaOf(body) } } } }),
    ...(bodyType && { requestBody: { required: true, content: { [bodyType]: {} } } }),
    responses: {
      ...errors,
      ...answersOf(operation, linksOf(operation, nouns, all)),
      default: {
        description: 'An error',
        content: { [JSON_TYPE]: { schema: { $ref: '#/components/schemas/Error' } } },
      },
    },
  };
}

function answersOf({ answer, also = {} }: Operation, links: object): Record<string, object> {
  const { status, type = JSON_TYPE } = answer;
  const answers: Record<string, object> = {};
  for (const [other, each] of Object.entries(also)) {
    const content = each.type || each.schema ? contentOf(each) : undefined;
    const description = Number(other) < 400 ? 'Success' : 'Not ready';
    answers[other] = { description, ...(content && { content }), ...links };
  }
  const beside = also[status];
  const content = { ...contentOf({ ...answer, type }), ...(beside && contentOf(beside)) };
  return { ...answers, [status]: { description: 'Success', content, ...links } };
}

function contentOf({ type = JSON_TYPE, schema, of }: Answer): Record<string, object> {
  const plain = { type: type === JSON_TYPE ? 'object' : 'string' };
  return { [type]: { schema: of ? schemaOf(of) : (schema ?? plain) } };
}

/** To each operation whose path needs no more than this one took and gives. */
function linksOf(
  { gives }: Operation,
  taken: readonly PathPart[],
  all: Readonly<Record<string, Operation>>,
): object {
  if (!gives) return {};
  const links = Object.entries(all).flatMap(([route, { id }]) => {
    const parts = nounsOf(route.split(' ')[1] ?? '');
    const values = parts.map((part) => valueOf(part, gives, taken));
    if (!parts.some(({ noun }) => gives[noun]) || values.includes(null)) return [];
    const parameters = Object.fromEntries(parts.map(({ name }, index) => [name, values[index]]));
    return [[id, { operationId: id, parameters }]];
  });
  return { links: Object.fromEntries(links) as object };
}

function valueOf(
  { noun }: PathPart,
  gives: NonNullable<Operation['gives']>,
  taken: readonly PathPart[],
): string | null {
  if (gives[noun]) return `$response.body#${gives[noun]}`;
  const own = taken.find((part) => part.noun === noun);
  return own ? `$request.path.${own.name}` : null;
}

/** Whoever has one of the scopes may ask; where there is none, whoever is known. */
function securityOf(route: string, isPublic: boolean, keyless: boolean): object {
  if (isPublic) return { security: [] };
  const security = [{ bearer: [] }, ...(keyless ? [{}] : [])];
  return { security, 'x-troupe-scopes': ROUTE_SCOPES[route] ?? [] };
}

interface PathPart {
  name: string;
  /** The word before it, which says what it is an id of. */
  noun: PathNoun;
}

function nounsOf(path: string): PathPart[] {
  const parts = path.split('/');
  return parts.flatMap((part, index) => {
    if (!part.startsWith('{')) return [];
    const name = part.slice(1, -1);
    const noun = parts[index - 1] ?? '';
    if (!isNoun(noun)) throw new Error(`nothing says what {${name}} of ${path} is`);
    return [{ name, noun }];
  });
}

function isNoun(word: string): word is PathNoun {
  return word in PATH_PARAMETERS;
}

function pathParameter({ name, noun }: PathPart): object {
  const { schema, example } = PATH_PARAMETERS[noun];
  return { name, in: 'path', required: true, schema: schemaOf(schema), example };
}

/** Required is what the schema refuses to go without. */
function queryParameters(query: z.ZodObject | undefined): object[] {
  return Object.entries(query?.shape ?? {}).map(([name, each]) => {
    const schema = each as z.ZodType;
    return { name, in: 'query', required: !schema.safeParse(undefined).success, schema: schemaOf(schema) };
  });
}

/** As a client writes it. */
export function schemaOf(schema: z.ZodType): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  return rest;
}
